package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/figures"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/process"
)

const mebibyte = 1 << 20

// lagMetric is the operator's metric for the delay of its work.
const lagMetric = "storagebucket_due_lag_seconds"

var never = Figure(math.Inf(1))

// steady measures the steady state, in which nothing changes.
func (r *run) steady(ctx context.Context, _ context.CancelCauseFunc) error {
	before, err := r.reportedLag(ctx)
	if err != nil {
		return err
	}
	if err := r.operator.ForgetPeak(); err != nil {
		return err
	}
	period, err := r.costs(ctx, r.window)
	if err != nil {
		return err
	}
	after, err := r.reportedLag(ctx)
	if err != nil {
		return err
	}
	if lag := after.Since(before); r.Operator == ours {
		r.Figures["reportedLagP99"] = Figure(lag.AtMost(0.99))
		r.Figures["reportedLagMax"] = Figure(lag.AtMost(1))
	}
	all, byBucket, err := r.arrivals(ctx)
	if err != nil {
		return err
	}
	mean, peak := figures.PerSecond(all, period), figures.Peak(all, period)
	r.Figures["requests"], r.Figures["requestsPeak"] = Figure(mean), Figure(peak)
	r.Figures["peakOverMean"] = Figure(float64(peak) / mean)
	late := figures.Gaps(byBucket, r.interval, period)
	r.Figures["lagP99"] = Figure(figures.Percentile(late, 0.99))
	r.Figures["lagMax"] = Figure(figures.Percentile(late, 1))
	r.Figures["statusWrites"] = Figure(figures.PerMinute(r.record.Writes(), period))
	return nil
}

// costs measures the CPU time and memory that the operator and the API server use in
// the given time.
func (r *run) costs(ctx context.Context, length time.Duration) (period figures.Period, err error) {
	operator, err := r.operator.CPU()
	if err != nil {
		return period, err
	}
	plane, err := r.plane.CPU()
	if err != nil {
		return period, err
	}
	start := time.Now()
	samples, err := r.sampleMemory(ctx, length)
	if err != nil {
		return period, err
	}
	minutes := time.Since(start).Minutes()
	operatorAfter, err := r.operator.CPU()
	if err != nil {
		return period, err
	}
	planeAfter, err := r.plane.CPU()
	if err != nil {
		return period, err
	}
	r.Figures["cpu"] = Figure((operatorAfter - operator).Seconds() / minutes)
	r.Figures["planeCPU"] = Figure((planeAfter - plane).Seconds() / minutes)
	r.memory(samples)
	return figures.Period{From: start.UnixNano(), To: start.UnixNano() + int64(length)}, nil
}

// sampleMemory reads the operator's memory once a second.
func (r *run) sampleMemory(ctx context.Context, length time.Duration) ([]process.Memory, error) {
	var samples []process.Memory
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	end := time.NewTimer(length)
	defer end.Stop()
	for {
		m, err := r.operator.Memory()
		if err != nil {
			return nil, err
		}
		samples = append(samples, m)
		select {
		case <-tick.C:
		case <-end.C:
			return samples, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (r *run) memory(samples []process.Memory) {
	var resident, anonymous int64
	for _, m := range samples {
		resident += m.Resident
		anonymous += m.Anonymous
	}
	n, last := float64(len(samples)), samples[len(samples)-1]
	r.Figures["memoryMean"] = Figure(float64(resident) / n / mebibyte)
	r.Figures["memoryAnonymous"] = Figure(float64(anonymous) / n / mebibyte)
	r.Figures["memoryPeak"] = Figure(float64(last.Peak) / mebibyte)
	r.Figures["memoryProportional"] = Figure(float64(last.Proportional) / mebibyte)
}

// reportedLag reads the operator's own metric. The result is empty for the baseline,
// which has no such metric.
func (r *run) reportedLag(ctx context.Context) (figures.Histogram, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.metrics, nil)
	if err != nil {
		return figures.Histogram{}, fmt.Errorf("reading the metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return figures.Histogram{}, fmt.Errorf("reading the metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return figures.Histogram{}, fmt.Errorf("reading the metrics: %s", resp.Status)
	}
	return figures.ReadHistogram(resp.Body, lagMetric)
}

// outage takes the store down and up again, each time half an interval after a tick of the
// baseline. For an outage at a random time, the average distance to the previous tick is also half
// an interval. The baseline's ticks are counted from its start.
func (r *run) outage(ctx context.Context, _ context.CancelCauseFunc) error {
	if err := pause(ctx, untilMidInterval(time.Since(r.since), r.interval)); err != nil {
		return err
	}
	cpu, err := r.operator.CPU()
	if err != nil {
		return err
	}
	down := time.Now()
	if err := r.store.Down(ctx); err != nil {
		return err
	}
	if err := r.awaitDown(ctx, down); err != nil {
		return err
	}
	cpuAfter, err := r.operator.CPU()
	if err != nil {
		return err
	}
	up := time.Now()
	if err := r.store.Up(ctx); err != nil {
		return err
	}
	r.Figures["outageCPU"] = Figure((cpuAfter - cpu).Seconds() / up.Sub(down).Minutes())
	r.progress("store back")
	if err := r.awaitUp(ctx); err != nil {
		return err
	}
	return r.judgeOutage(ctx, down.UnixNano(), up.UnixNano(), time.Now().UnixNano())
}

// awaitDown waits until all buckets show the outage, but not longer than the limit. It
// always waits for a multiple of the interval.
func (r *run) awaitDown(ctx context.Context, down time.Time) error {
	for k := 1; ; k++ {
		length := time.Duration(k) * r.interval
		if err := pause(ctx, time.Until(down.Add(length))); err != nil {
			return err
		}
		levels := r.record.Healthy()
		if length >= r.limit() || length >= shortestOutage && levels[len(levels)-1].Count == 0 {
			return nil
		}
	}
}

// awaitUp waits until all buckets are healthy again, but not longer than the limit.
func (r *run) awaitUp(ctx context.Context) error {
	limited, done := context.WithTimeout(ctx, r.limit())
	defer done()
	if err := r.record.Await(limited, r.Buckets); err != nil && ctx.Err() != nil {
		return err
	}
	return nil // a recovery that takes longer than the limit is a result, too
}

// limit returns how long to wait for a change before the change counts as missing.
func (r *run) limit() time.Duration { return max(3*r.interval, time.Minute) }

func (r *run) judgeOutage(ctx context.Context, down, up, end int64) error {
	all, _, err := r.arrivals(ctx)
	if err != nil {
		return err
	}
	levels := r.record.Healthy()
	half := (r.Buckets + 1) / 2
	broken := r.notHealthy(levels, up)
	r.reached("outageHalf", down, broken, half)
	r.reached("outageAll", down, broken, r.Buckets)
	r.reached("recoveryHalf", up, levels, half)
	r.reached("recoveryAll", up, levels, r.Buckets)
	period := figures.Period{From: down, To: up}
	r.Figures["outageRequests"] = Figure(figures.PerSecond(all, period))
	r.Figures["outageRequestsLater"] = Figure(figures.PerSecond(all, period.After(noticing)))
	r.Figures["outagePeak"] = Figure(figures.Peak(all, period))
	r.Figures["recoveryPeak"] = Figure(figures.Peak(all, figures.Period{From: up, To: end}))
	return nil
}

// notHealthy converts the counts of healthy buckets into counts of the other buckets.
// It drops all counts that were recorded at the given time or later.
func (r *run) notHealthy(levels []figures.Level, until int64) []figures.Level {
	var others []figures.Level
	for _, l := range levels {
		if l.At < until {
			others = append(others, figures.Level{At: l.At, Count: r.Buckets - l.Count})
		}
	}
	return others
}

// untilMidInterval returns the time until the next middle of an interval.
func untilMidInterval(elapsed, interval time.Duration) time.Duration {
	wait := interval/2 - elapsed%interval
	if wait < 0 {
		wait += interval
	}
	return wait
}

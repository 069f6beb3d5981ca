package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/countstore"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/figures"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/fleet"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/process"
)

const (
	// stopGrace limits the time a program takes to stop.
	stopGrace = 10 * time.Second
	// readyLimit limits the time a program takes to start.
	readyLimit = time.Minute
	// startLimit limits the time to declare all buckets, and then the time to
	// probe all of them for the first time.
	startLimit = 5 * time.Minute
	// shortestOutage is the minimum length of an outage. Enough of the outage must remain
	// for measurements after the operator has noticed it.
	shortestOutage = 15 * time.Second
	// noticing is the time within which the operator should notice that the store is down.
	noticing = 5 * time.Second
)

// Run is the result of one measurement of one operator with one number of buckets.
type Run struct {
	Operator string            `json:"operator"`
	Buckets  int               `json:"buckets"`
	Round    int               `json:"round"`
	Figures  map[string]Figure `json:"figures"`
}

// run is a Run in progress. Each run has its own plane, store and operator.
type run struct {
	options
	Run

	dir      string
	started  []*process.Process
	plane    *process.Process
	store    countstore.Steer
	operator *process.Process
	since    time.Time // when the operator was started
	metrics  string    // URL
	record   *fleet.Record
}

// measure does one Run. Before it returns, it stops everything that it has started.
func measure(ctx context.Context, o options, operator string, buckets, round int) (Run, error) {
	r := &run{options: o, Run: Run{Operator: operator, Buckets: buckets, Round: round, Figures: map[string]Figure{}}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var err error
	if r.dir, err = os.MkdirTemp("", "storagebucket-bench-"); err != nil {
		return r.Run, fmt.Errorf("creating a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(r.dir) }()
	defer r.stop()
	for _, step := range []struct {
		name string
		do   func(context.Context, context.CancelCauseFunc) error
	}{
		{"starting the API server and the store", r.startSurroundings},
		{"declaring the buckets", r.declare},
		{"starting the operator", r.startOperator},
		{"waiting for the steady state", func(ctx context.Context, _ context.CancelCauseFunc) error { return pause(ctx, r.settle) }},
		{"measuring the steady state", r.steady},
		{"store down", r.outage},
	} {
		r.progress("%s", step.name)
		if err := step.do(ctx, cancel); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause // the reason for the cancellation explains more than err
			}
			return r.Run, fmt.Errorf("%s, %d buckets: %s: %w", operator, buckets, step.name, err)
		}
	}
	return r.Run, nil
}

func (r *run) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %-8s %6d  %s\n", time.Now().Format("15:04:05"), r.Operator, r.Buckets, fmt.Sprintf(format, args...))
}

// start starts a program that must not end before the run does.
func (r *run) start(cancel context.CancelCauseFunc, name, binary string, args ...string) (*process.Process, error) {
	p, err := process.Start(r.dir, name, binary, args...)
	if err != nil {
		return nil, err
	}
	r.started = append(r.started, p)
	go func() {
		<-p.Ended()
		cancel(p.Failure())
	}()
	return p, nil
}

// stop ends the programs in the reverse order of their start.
func (r *run) stop() {
	for i := len(r.started) - 1; i >= 0; i-- {
		r.started[i].Stop(stopGrace)
	}
}

func (r *run) path(name string) string { return filepath.Join(r.dir, name) }

func (r *run) startSurroundings(ctx context.Context, cancel context.CancelCauseFunc) (err error) {
	ctx, done := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not ready within %v", readyLimit))
	defer done()
	r.plane, err = r.start(cancel, "koboshi", r.koboshi, "up", "--profile", "api", "--ephemeral", "--die-with-parent",
		"--ready-file", r.path("plane-ready"), "--kubeconfig", r.path("kubeconfig"))
	if err != nil {
		return err
	}
	store, err := r.start(cancel, "store", r.storeBinary, "-ready-file", r.path("store-ready"),
		"-delay", r.delay.String(), "-buckets", fmt.Sprint(r.Buckets))
	if err != nil {
		return err
	}
	if err := errors.Join(
		r.plane.AwaitFile(ctx, r.path("plane-ready")),
		store.AwaitFile(ctx, r.path("store-ready")),
	); err != nil {
		return err
	}
	text, err := os.ReadFile(r.path("store-ready"))
	if err != nil {
		return fmt.Errorf("reading the store's addresses: %w", err)
	}
	if err := json.Unmarshal(text, &r.store.Addresses); err != nil {
		return fmt.Errorf("reading the store's addresses: %w", err)
	}
	return nil
}

func (r *run) declare(ctx context.Context, cancel context.CancelCauseFunc) error {
	limited, done := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not done within %v", startLimit))
	defer done()
	f := &fleet.Fleet{
		Kubeconfig: r.path("kubeconfig"),
		CRDs:       r.crds,
		Endpoint:   r.store.Endpoint,
		Buckets:    r.Buckets,
		Interval:   r.interval,
	}
	if err := f.Declare(limited); err != nil {
		return err
	}
	var err error
	r.record, err = f.Watch(ctx, cancel)
	return err
}

// startOperator starts the operator and waits until all buckets are healthy.
func (r *run) startOperator(ctx context.Context, cancel context.CancelCauseFunc) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	r.metrics = "http://" + address + "/metrics"
	binary, args := r.commandOf(r.Operator, r.path("kubeconfig"), address)
	r.since = time.Now()
	if r.operator, err = r.start(cancel, r.Operator, binary, args...); err != nil {
		return err
	}
	ctx, done := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not all buckets are healthy after %v", startLimit))
	defer done()
	if err := r.record.Await(ctx, r.Buckets); err != nil {
		return err
	}
	r.reached("startAll", r.since.UnixNano(), r.record.Healthy(), r.Buckets)
	return nil
}

// freeAddress returns a loopback address that is free right now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// pause waits for a fixed time, because nothing else marks the end of a measurement.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// arrivals returns the times of all requests at the store, and the same times grouped by
// bucket.
func (r *run) arrivals(ctx context.Context) (all []int64, byBucket map[int32][]int64, err error) {
	journal, err := r.store.Journal(ctx)
	if err != nil {
		return nil, nil, err
	}
	byBucket = map[int32][]int64{}
	for i := range r.Buckets {
		byBucket[int32(i)] = nil
	}
	for _, a := range journal {
		all = append(all, a.At)
		if a.Bucket >= 0 {
			byBucket[a.Bucket] = append(byBucket[a.Bucket], a.At)
		}
	}
	return all, byBucket, nil
}

// reached sets a figure to the number of seconds from the given time until the level
// was reached.
func (r *run) reached(key string, from int64, levels []figures.Level, want int) {
	r.Figures[key] = never
	if d, ok := figures.Reached(levels, from, want); ok {
		r.Figures[key] = Figure(d.Seconds())
	}
}

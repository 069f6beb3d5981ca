package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/figures"
)

// Report holds everything that was measured, and the conditions of the measurements.
type Report struct {
	Date       time.Time `json:"date"`
	CPUs       int       `json:"cpus"`
	Platform   string    `json:"platform"`
	Go         string    `json:"go"`
	Interval   string    `json:"interval"`
	Window     string    `json:"window"`
	StoreDelay string    `json:"storeDelay"`
	Workers    int       `json:"workers"`
	Runs       []Run     `json:"runs"`

	operators []string
}

func newReport(o options) *Report {
	return &Report{
		Date:       time.Now().UTC().Truncate(time.Second),
		CPUs:       runtime.NumCPU(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
		Go:         runtime.Version(),
		Interval:   o.interval.String(),
		Window:     o.window.String(),
		StoreDelay: o.delay.String(),
		Workers:    o.workers,
		operators:  o.operators,
	}
}

// fill does all runs. It writes the figures after each run, so that a long bench has
// results even if it is stopped.
func (r *Report) fill(ctx context.Context, o options) error {
	for round := range o.rounds {
		for _, size := range o.sizes {
			for i := range o.operators {
				// The order of the operators alternates, so that neither of them always
				// runs first.
				run, err := measure(ctx, o, o.operators[(i+round)%len(o.operators)], size, round)
				if err != nil {
					return err
				}
				r.Runs = append(r.Runs, run)
				if err := r.write(o.output); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *Report) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the figures: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

// median returns the median of a figure over all rounds. If a level was never reached, the
// figure counts as infinite.
func (r *Report) median(operator string, buckets int, key string) Figure {
	var values []float64
	for _, run := range r.Runs {
		f, ok := run.Figures[key]
		if run.Operator == operator && run.Buckets == buckets && ok {
			values = append(values, float64(f))
		}
	}
	return Figure(figures.Median(values))
}

func (r *Report) sizes() (sizes []int) {
	for _, run := range r.Runs {
		if !slices.Contains(sizes, run.Buckets) {
			sizes = append(sizes, run.Buckets)
		}
	}
	return sizes
}

// table writes all medians, in at most 80 columns.
func (r *Report) table(out io.Writer) {
	fmt.Fprintf(out, "%d CPUs, %s, %s; interval %s, measured for %s,\nstore answers in %s, %d workers\n",
		r.CPUs, r.Platform, r.Go, r.Interval, r.Window, r.StoreDelay, r.Workers)
	for _, size := range r.sizes() {
		fmt.Fprintf(out, "\n%-41s%12s%12s%15s\n", fmt.Sprintf("%d buckets", size), baseline, ours, "ours/baseline")
		for _, s := range sections {
			fmt.Fprintf(out, "%s\n", s.title)
			for _, row := range s.rows {
				theirs, our := r.median(baseline, size, row.key), r.median(ours, size, row.key)
				fmt.Fprintf(out, "  %-39s%12v%12v%15v\n", row.label, theirs, our, our/theirs)
			}
		}
		r.claims(out, size)
	}
}

// claimedFrom is the smallest number of buckets to which the operator's claims apply.
// With fewer buckets, a peak is a matter of chance, and most of the memory is used by the
// parts that every manager has.
const claimedFrom = 10000

// claims compares the figures with the operator's claims.
func (r *Report) claims(out io.Writer, size int) {
	if size < claimedFrom || !slices.Contains(r.operators, ours) {
		return
	}
	fmt.Fprintln(out, "Claims about the operator")
	for _, c := range []struct {
		label  string
		is     Figure
		atMost Figure
	}{
		{"peak / mean S3 requests, at most 1.5", r.median(ours, size, "peakOverMean"), 1.5},
		{"status writes per minute, none", r.median(ours, size, "statusWrites"), 0},
		{"lag p99 under 2 s", r.median(ours, size, "lagP99"), 2},
		{"memory at most half (largest RSS)", r.ratio(size, "memoryPeak"), 0.5},
		{"memory at most half (mean RSS)", r.ratio(size, "memoryMean"), 0.5},
		{"memory at most half (heap and stacks)", r.ratio(size, "memoryAnonymous"), 0.5},
		{"CPU at most half", r.ratio(size, "cpu"), 0.5},
		{"at most 2 requests a second while down", r.median(ours, size, "outageRequests"), 2},
	} {
		verdict := "met"
		switch {
		case math.IsNaN(float64(c.is)):
			verdict = "unknown"
		case c.is > c.atMost:
			verdict = "MISSED"
		}
		fmt.Fprintf(out, "  %-51s%12v%15s\n", c.label, c.is, verdict)
	}
}

func (r *Report) ratio(size int, key string) Figure {
	return r.median(ours, size, key) / r.median(baseline, size, key)
}

// missing returns an error that names the figures that were not obtained.
func (r *Report) missing() error {
	var names []string
	for _, run := range r.Runs {
		for _, s := range sections {
			for _, row := range s.rows {
				if f, ok := run.Figures[row.key]; (!ok || !f.obtained()) && (!row.ours || run.Operator == ours) {
					names = append(names, fmt.Sprintf("%s of %s at %d", row.key, run.Operator, run.Buckets))
				}
			}
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("figures not obtained: %s", strings.Join(names, ", "))
	}
	return nil
}

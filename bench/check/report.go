package main

import (
	"fmt"
	"io"

	"github.com/koboshi-dev/koboshi/bench/internal/jsonfile"
	"github.com/koboshi-dev/koboshi/bench/internal/result"
	"github.com/koboshi-dev/koboshi/bench/internal/stats"
)

// These are the figures that Koboshi promises.
const (
	leastRatio     = 8  // ratio to runs with stock envtest
	leastPerMinute = 60 // on two cores
	mostFewer      = 15 // in percent of the reconciles
	mostMore       = 25 // in percent of the p99 of requests
)

// report is one run of the benchmark. It contains nothing that identifies the machine or a
// person.
type report struct {
	Comment string         `json:"comment,omitempty"`
	Date    string         `json:"date"`
	Machine result.Machine `json:"machine"`
	// Workers is the number of parallel runs in StockAtOnce; koboshi check chooses its own
	// number.
	Workers int `json:"workers"`
	// ConvergeMS is the time in milliseconds from a change of the resource to the
	// controller's last write, without a fault.
	ConvergeMS float64     `json:"convergeMs"`
	Rounds     []round     `json:"rounds"`
	Recording  []recording `json:"recording,omitempty"`
}

// round holds the results of koboshi check and of stock envtest, measured within the same
// minutes.
type round struct {
	Koboshi     series `json:"koboshi"`
	Stock       series `json:"stock"`
	StockAtOnce series `json:"stockAtOnce"`
}

// series holds the figures of runs with faults, which were made one after the other or
// several in parallel.
type series struct {
	Runs    int     `json:"runs"`
	Seconds float64 `json:"seconds"`
	// ReferenceMS is the duration in milliseconds of the complete scenario without a fault,
	// including the waits until the cluster is idle.
	ReferenceMS float64 `json:"referenceMs,omitempty"`
	// AllSeconds also includes the start of the planes, the runs without a fault and the
	// report.
	AllSeconds float64 `json:"allSeconds,omitempty"`
	// Pruned counts additional runs that ended early. The controller is correct, so
	// Findings counts only false findings and should be zero.
	Pruned   int `json:"pruned,omitempty"`
	Findings int `json:"findings,omitempty"`
}

func (s series) perMinute() float64 { return 60 * float64(s.Runs) / s.Seconds }

// allPerMinute includes the time before the first fault.
func (s series) allPerMinute() float64 { return 60 * float64(s.Runs) / s.AllSeconds }

// recording holds figures that show how much the proxy slows a controller down.
type recording struct {
	Name          string  `json:"name"`
	DirectPerSec  float64 `json:"directReconcilesPerSecond"`
	ProxiedPerSec float64 `json:"proxiedReconcilesPerSecond"`
	FewerPercent  float64 `json:"fewerReconcilesPercent"`
	DirectP99     float64 `json:"directP99Ms"`
	ProxiedP99    float64 `json:"proxiedP99Ms"`
	MoreP99       float64 `json:"moreP99Percent"`
}

// write writes the report to a file.
func (r *report) write(path string) error { return jsonfile.Write(path, r) }

// of returns the spread of a value over the rounds.
func (r *report) of(value func(round) float64) stats.Spread {
	var values []float64
	for _, s := range r.Rounds {
		values = append(values, value(s))
	}
	return stats.Of(values)
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) spread(label string, s stats.Spread, more string) {
	p.line("%-45s %7s (%s-%s) %s", label, result.Short(s.Median), result.Short(s.Min), result.Short(s.Max), more)
}

// met formats a comparison with a promised figure.
func met(ok bool, format string, args ...any) string {
	word := "met"
	if !ok {
		word = "MISSED"
	}
	return fmt.Sprintf("target "+format+": ", args...) + word
}

// table writes the report as text for a terminal.
func (r *report) table(w io.Writer) error {
	p := &printer{w: w}
	p.line("faults per minute, median (min-max) of %d rounds", len(r.Rounds))
	rate := r.of(func(s round) float64 { return s.Koboshi.perMinute() })
	ratio := r.of(func(s round) float64 { return s.Koboshi.perMinute() / s.Stock.perMinute() })
	p.spread("koboshi check", rate, met(rate.Median >= leastPerMinute, "at least %d on 2 cores", leastPerMinute))
	p.spread("  including start and runs without a fault", r.of(func(s round) float64 { return s.Koboshi.allPerMinute() }), "")
	p.spread("fresh stock envtest and process, one by one", r.of(func(s round) float64 { return s.Stock.perMinute() }), "")
	p.spread(fmt.Sprintf("  %d in parallel", r.Workers), r.of(func(s round) float64 { return s.StockAtOnce.perMinute() }), "")
	p.spread("ratio", ratio, met(ratio.Median >= leastRatio, "at least %d", leastRatio))
	p.spread(fmt.Sprintf("  to %d in parallel", r.Workers), r.of(func(s round) float64 { return s.Koboshi.perMinute() / s.StockAtOnce.perMinute() }), "")
	p.spread("complete scenario without a fault, ms", r.of(func(s round) float64 { return s.Koboshi.ReferenceMS }), "")
	p.line("%-45s %7s", "from a change to the last write, ms", result.Short(r.ConvergeMS))
	for _, s := range r.Rounds {
		if s.Koboshi.Findings > 0 {
			p.line("koboshi check reported a finding for a correct controller, so the figures of that round are useless")
		}
	}
	for _, c := range r.Recording {
		p.line("")
		p.line("recording, %s", c.Name)
		p.line("reconciles a second: %s, recorded %s: %+.1f %%; %s", result.Short(c.DirectPerSec), result.Short(c.ProxiedPerSec),
			-c.FewerPercent, met(c.FewerPercent <= mostFewer, "at most %d %% fewer", mostFewer))
		p.line("p99 of requests: %s ms, recorded %s ms: %+.1f %%; %s", result.Short(c.DirectP99), result.Short(c.ProxiedP99),
			c.MoreP99, met(c.MoreP99 <= mostMore, "at most %d %% more", mostMore))
	}
	if r.Comment != "" {
		p.line("\n%s", r.Comment)
	}
	return p.err
}

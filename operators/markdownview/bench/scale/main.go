// Command scale measures the cost of many sites: the memory and CPU time of the manager, and its
// requests to the API server. The benchmark measures this cost while sites are created, while one
// of them is edited, and while nothing changes. Viewers are simulated and cost nothing in this
// benchmark.
//
// On systems other than Linux, the benchmark also runs, but does not report the load
// average. A single figure means little on a shared machine; compare the figures for
// different numbers of sites.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/koboshi-dev/koboshi/operators/markdownview/bench/internal/figures"
)

// flat is the maximum ratio of the cost of an edit with the largest number of sites to the cost of
// an edit with the smallest number. This ratio leaves room for measurement errors.
const flat = 1.25

type options struct {
	sizes        []int
	pages, edits int
	steady       time.Duration
	output       string
}

// Report holds the measurements and their conditions.
type Report struct {
	figures.Conditions
	Pages  int    `json:"pages"`
	Edits  int    `json:"edits"`
	Sizes  []Size `json:"sizes"`
	Steady Steady `json:"steady"`
}

// Size holds the measurements at one number of sites. Times are in seconds.
type Size struct {
	Sites int `json:"sites"`
	// Created is the cost of each site that was added to reach this size.
	Created Cost `json:"created"`
	// Edited is the cost of an edit. Edits are made one after the other.
	Edited Cost `json:"edited"`
	// Resident and Heap are the memory of the manager in bytes, after the edits.
	Resident float64 `json:"resident"`
	Heap     float64 `json:"heap"`
}

// Cost is the average cost of one object.
type Cost struct {
	Took   float64            `json:"took"`
	CPU    float64            `json:"cpu"`
	Writes float64            `json:"writes"`
	Reads  float64            `json:"reads"`
	Kinds  map[string]float64 `json:"kinds"`
}

// Steady is the cost of all sites while nothing changes.
type Steady struct {
	Seconds float64 `json:"seconds"`
	Writes  float64 `json:"writes"`
	Reads   float64 `json:"reads"`
	CPU     float64 `json:"cpu"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	log.SetLogger(zap.New(zap.WriteTo(io.Discard))) // hides the logs of the libraries; errors are returned
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	var o options
	var sizes string
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	f.StringVar(&sizes, "n", "1,100,500", "numbers of sites, separated by commas, in increasing order")
	f.IntVar(&o.pages, "pages", 20, "number of pages of each site")
	f.IntVar(&o.edits, "edits", 20, "number of edits at each size, made one after the other")
	f.DurationVar(&o.steady, "steady", 5*time.Minute, "length of the idle period at the end")
	f.StringVar(&o.output, "o", "", "file to write all figures to, in JSON")
	if err := f.Parse(args); err != nil {
		return err
	}
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 || len(o.sizes) > 0 && n <= slices.Max(o.sizes) {
			return fmt.Errorf("-n: %q must be a number of sites, and larger than the number before it", size)
		}
		o.sizes = append(o.sizes, n)
	}
	if f.NArg() > 0 || o.pages < 2 || o.edits < 1 || o.steady <= 0 {
		return errors.New("no arguments are allowed; -pages must be at least 2, -edits at least 1, and -steady more than 0; see -h")
	}
	report, err := measure(ctx, o)
	if err != nil {
		return err
	}
	report.table(out)
	return figures.Write(o.output, report)
}

// row is a line of the table.
type row struct {
	label string
	of    func(*Size) float64
}

var rows = []row{
	{"one more site: writes", func(s *Size) float64 { return s.Created.Writes }},
	{"  reads", func(s *Size) float64 { return s.Created.Reads }},
	{"  CPU of the manager, ms", func(s *Size) float64 { return s.Created.CPU * 1000 }},
	{"  time, many at once, ms", func(s *Size) float64 { return s.Created.Took * 1000 }},
	{"one edit: writes", func(s *Size) float64 { return s.Edited.Writes }},
	{"  reads", func(s *Size) float64 { return s.Edited.Reads }},
	{"  CPU of the manager, ms", func(s *Size) float64 { return s.Edited.CPU * 1000 }},
	{"  time until it is served, ms", func(s *Size) float64 { return s.Edited.Took * 1000 }},
	{"memory of the manager, MiB", func(s *Size) float64 { return s.Resident / (1 << 20) }},
	{"  heap of the manager, MiB", func(s *Size) float64 { return s.Heap / (1 << 20) }},
}

// table writes the report as a table, 80 columns wide with three sizes.
func (r *Report) table(out io.Writer) {
	fmt.Fprintf(out, "%s\n%d pages a site, %d edits, Pods are simulated\n\n", &r.Conditions, r.Pages, r.Edits)
	fmt.Fprintf(out, "%-38s", "sites")
	for i := range r.Sizes {
		fmt.Fprintf(out, "%14d", r.Sizes[i].Sites)
	}
	for _, row := range rows {
		fmt.Fprintf(out, "\n%-38s", row.label)
		for i := range r.Sizes {
			fmt.Fprintf(out, "%14.2f", row.of(&r.Sizes[i]))
		}
	}
	last := &r.Sizes[len(r.Sizes)-1]
	fmt.Fprintf(out, "\n\nnumber of writes that one edit causes, with %d sites:\n", last.Sites)
	for _, kind := range slices.Sorted(keys(last.Edited.Kinds)) {
		fmt.Fprintf(out, "  %-36s%14.2f\n", kind, last.Edited.Kinds[kind])
	}
	fmt.Fprintf(out, "\nLimits, with %d sites\n", last.Sites)
	for _, c := range []struct {
		label      string
		is, atMost float64
	}{
		{fmt.Sprintf("writes of an edit / with %d sites, at most %.2f", r.Sizes[0].Sites, flat), last.Edited.Writes / r.Sizes[0].Edited.Writes, flat},
		{fmt.Sprintf("writes in %.0f s without an edit, none", r.Steady.Seconds), r.Steady.Writes, 0},
		{fmt.Sprintf("reads in %.0f s without an edit, none", r.Steady.Seconds), r.Steady.Reads, 0},
	} {
		fmt.Fprintf(out, "  %-54s%12.2f%12s\n", c.label, c.is, figures.Verdict(c.is, c.atMost))
	}
	fmt.Fprintf(out, "CPU time of the manager without edits, ms per second: %.2f\n", 1000*r.Steady.CPU/r.Steady.Seconds)
}

// Command track runs the track record. It runs koboshi check on every bug of this module
// and on its repaired twin. For the bug, koboshi check must report a finding; for the twin,
// it must report nothing. Run it in the folder of the module, as make bugs does.
//
//	track [-seeds 1,2,3] [-only a1,b2] [-shard 1/4] [-jobs 4] [-budget 2m] [-o json=FILE]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// options holds the flags of the program.
type options struct {
	koboshi string
	bugs    string // the program with the controllers
	seeds   []uint64
	only    []string
	shard   string
	jobs    int
	budget  time.Duration
	output  string
	strict  bool
	verbose bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "track:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	var seeds, only string
	fs := flag.NewFlagSet("track", flag.ContinueOnError)
	fs.StringVar(&o.koboshi, "koboshi", "../bin/koboshi", "the koboshi `program`")
	fs.StringVar(&o.bugs, "bugs", "", "the `program` with the controllers (default: ../bin/bugs, which is built first)")
	fs.StringVar(&seeds, "seeds", "1", "comma-separated `seeds`; everything is run once with each seed")
	fs.StringVar(&only, "only", "", "run only these `bugs`, such as a1,b2")
	fs.StringVar(&o.shard, "shard", "", "run every n-th bug, starting with the i-th, as `i/n`")
	fs.IntVar(&o.jobs, "jobs", 2*runtime.NumCPU(), "number of bugs to check in parallel, each with two planes")
	fs.DurationVar(&o.budget, "budget", 0, "time limit for the check of each twin (default: none)")
	fs.StringVar(&o.output, "o", "", "json=`FILE` to write the results also to a file")
	fs.BoolVar(&o.strict, "strict", false, "also fail if a kind of fault that bug.yaml does not list finds a bug")
	fs.BoolVar(&o.verbose, "v", false, "show the output of koboshi")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	for _, s := range strings.Split(seeds, ",") {
		seed, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
		if err != nil {
			return o, fmt.Errorf("-seeds: %q is not an integer", s)
		}
		o.seeds = append(o.seeds, seed)
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if o.jobs < 1 {
		return o, fmt.Errorf("-jobs is %d; it must be at least 1", o.jobs)
	}
	if o.output != "" && !strings.HasPrefix(o.output, "json=") {
		return o, fmt.Errorf("-o %s: write json=FILE", o.output)
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	bugs, err := load(".", o.only, o.shard)
	if err != nil {
		return err
	}
	if err := o.programs(ctx); err != nil {
		return err
	}
	table := newTable(os.Stdout)
	var rows []row
	for _, seed := range o.seeds {
		table.header(seed)
		for r := range o.rows(ctx, bugs, seed) {
			rows = append(rows, r)
			table.row(r)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if err := o.write(rows); err != nil {
		return err
	}
	return table.footer(rows)
}

// rows returns the results in the order of bugs. rows checks several bugs in parallel.
func (o *options) rows(ctx context.Context, bugs []*bug, seed uint64) iter.Seq[row] {
	results := make([]chan row, len(bugs))
	for i := range results {
		results[i] = make(chan row, 1)
	}
	var next atomic.Int64
	var jobs sync.WaitGroup
	for range min(o.jobs, len(bugs)) {
		jobs.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(bugs)); i = next.Add(1) - 1 {
				results[i] <- o.row(ctx, bugs[i], seed)
			}
		})
	}
	return func(yield func(row) bool) {
		defer jobs.Wait() // so that no process of a check is left
		for _, result := range results {
			if r := <-result; ctx.Err() != nil || !yield(r) {
				return
			}
		}
	}
}

// programs builds the controllers, and makes the paths of the programs absolute.
func (o *options) programs(ctx context.Context) error {
	if o.bugs == "" {
		o.bugs = "../bin/bugs"
		if err := build(ctx, o.bugs); err != nil {
			return err
		}
	}
	for _, path := range []*string{&o.koboshi, &o.bugs} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		if _, err := os.Stat(absolute); err != nil {
			return fmt.Errorf("%w; build the program with make build, or name it with a flag", err)
		}
		*path = absolute
	}
	return nil
}

// write writes the results to the file named by -o.
func (o *options) write(rows []row) error {
	file, ok := strings.CutPrefix(o.output, "json=")
	if !ok {
		return nil
	}
	data, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

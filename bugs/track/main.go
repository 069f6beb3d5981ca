// Command track runs the track record. It runs koboshi check on every bug of this module
// and on its repaired twin. For the bug, koboshi check must report a finding; for the twin,
// it must report nothing. Run it in the folder of the module, as make bugs does.
//
//	track [-seeds 1,2,3] [-only a1,b2] [-shard 1/4] [-jobs 4] [-budget 2m] [-o json=FILE [-resume]]
package main

import (
	"context"
	"errors"
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
	file    string // the results are written to it unless it is empty
	resume  bool
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
	var seeds, only, output string
	fs := flag.NewFlagSet("track", flag.ContinueOnError)
	fs.StringVar(&o.koboshi, "koboshi", "../bin/koboshi", "the koboshi `program`")
	fs.StringVar(&o.bugs, "bugs", "", "the `program` with the controllers (default: ../bin/bugs, which is built first)")
	fs.StringVar(&seeds, "seeds", "1", "comma-separated `seeds`; everything is run once with each seed")
	fs.StringVar(&only, "only", "", "run only these `bugs`, such as a1,b2")
	fs.StringVar(&o.shard, "shard", "", "run every n-th bug, starting with the i-th, as `i/n`")
	fs.IntVar(&o.jobs, "jobs", 2*runtime.NumCPU(), "number of bugs to check in parallel, each with two planes")
	fs.DurationVar(&o.budget, "budget", 0, "time limit for the check of each twin (default: none)")
	fs.StringVar(&output, "o", "", "json=`FILE` to write the results also to a file")
	fs.BoolVar(&o.resume, "resume", false, "do not run again what is in the file named by -o")
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
	o.file, _ = strings.CutPrefix(output, "json=")
	if output != "" && (o.file == output || o.file == "") {
		return o, fmt.Errorf("-o %s: write json=FILE", output)
	}
	if o.resume && o.file == "" {
		return o, errors.New("-resume continues the run whose results are in a file; name the file with -o json=FILE")
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
	results, err := newResults(o.file, o.resume)
	if err != nil {
		return err
	}
	table := newTable(os.Stdout)
	seed := o.seeds[0]
	table.header(seed)
	var rows []row
	for r, err := range o.rows(ctx, bugs, results) {
		if err != nil {
			return err
		}
		if r.Seed != seed {
			seed = r.Seed
			table.header(seed)
		}
		rows = append(rows, r)
		table.row(r)
	}
	return table.footer(rows)
}

// rows returns the results in the order of seeds and bugs, or the error that ended the run.
// rows checks several bugs in parallel, and begins the next seed while the last checks of a
// seed are still running, because these mostly wait for timers.
func (o *options) rows(ctx context.Context, bugs []*bug, results *results) iter.Seq2[row, error] {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make([]chan row, len(o.seeds)*len(bugs))
	for i := range done {
		done[i] = make(chan row, 1)
	}
	var next atomic.Int64
	var jobs sync.WaitGroup
	for range min(o.jobs, len(done)) {
		jobs.Go(func() {
			for i := int(next.Add(1) - 1); i < len(done) && ctx.Err() == nil; i = int(next.Add(1) - 1) {
				r, err := o.result(ctx, bugs[i%len(bugs)], o.seeds[i/len(bugs)], results)
				if err != nil {
					cancel(err)
					return
				}
				done[i] <- r
			}
		})
	}
	return func(yield func(row, error) bool) {
		defer jobs.Wait() // so that no process of a check is left
		defer cancel(nil)
		for _, result := range done {
			select {
			case r := <-result:
				if !yield(r, nil) {
					return
				}
			case <-ctx.Done():
				yield(row{}, context.Cause(ctx))
				return
			}
		}
	}
}

// result returns the result for a bug with a seed. It checks the bug unless an earlier run did.
func (o *options) result(ctx context.Context, b *bug, seed uint64, results *results) (row, error) {
	if r, ok := results.find(b.ID, seed); ok {
		return r, nil
	}
	r := o.row(ctx, b, seed)
	if ctx.Err() != nil { // the checks were interrupted
		return row{}, context.Cause(ctx)
	}
	return r, results.add(r)
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

// Command pairs runs koboshi check on real bugs of other projects, each at the commit before
// its fix and at the commit of the fix, and tells which pairs the check tells apart.
//
//	pairs [-only ID,...] [-koboshi FILE] [-dir DIR] [-budget TIME] [-seed N] [-list] [PAIRS]
//
// PAIRS is a folder with one file for each pair, hack/pairs/pairs by default. The sources come from
// GitHub, and their modules from the Go proxy. Each check runs in a network namespace that leads
// nowhere, because some operators call home. So pairs needs Linux, with git, unshare and ip.
//
// The reports go to DIR. A report that is already there is not made again, so pairs can be
// interrupted, and goes on where it stopped. -list makes none, and prints the table of those that exist.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	koboshi string
	dir     string
	only    string
	budget  time.Duration
	seed    uint64
	list    bool
}

func main() {
	var o options
	flag.StringVar(&o.koboshi, "koboshi", "bin/koboshi", "the koboshi to run")
	flag.StringVar(&o.dir, "dir", "bin/pairs", "folder for the sources and the reports")
	flag.StringVar(&o.only, "only", "", "pairs to run, separated by commas; all by default")
	flag.DurationVar(&o.budget, "budget", 9*time.Minute, "time limit of a check, without building the operator")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of each check")
	flag.BoolVar(&o.list, "list", false, "run nothing, and print the table of the reports that exist")
	flag.Parse()
	folder := "hack/pairs/pairs"
	if flag.NArg() > 0 {
		folder = flag.Arg(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, folder, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pairs:", err)
		os.Exit(1)
	}
}

// run runs the pairs that have no report yet, and prints the table of all reports.
func run(ctx context.Context, folder string, o options) error {
	pairs, err := read(folder)
	if err != nil {
		return err
	}
	if o.only != "" {
		if pairs, err = choose(pairs, strings.Split(o.only, ",")); err != nil {
			return err
		}
	}
	results := make([]result, len(pairs))
	for i, p := range pairs {
		results[i] = result{pair: p}
		for side := range results[i].reports {
			r, err := o.report(ctx, p, sides[side])
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil { // the other pairs may still work
				fmt.Fprintf(os.Stderr, "pairs: %s, %s: %v\n", p.ID, sides[side], err)
			}
			results[i].reports[side] = r
		}
	}
	return table(os.Stdout, results)
}

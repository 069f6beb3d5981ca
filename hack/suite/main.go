// Command suite runs the parts of the test suite side by side and reports on
// each of them.
//
//	suite [-jobs N] [-logs DIR] [-built TARGETS] [-flags TESTFLAGS] TARGET...
//
// A part is a target of the Makefile. Many parts wait more than they compute,
// so running several in parallel saves time even on two processors. The parts start in
// the given order, so name the longest first. -built names targets that several parts
// need and that are already built; they are not made again.
//
// The output of a part goes to DIR/TARGET.log. If a part fails, its output is printed as
// well, except the output of passing tests.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

type options struct {
	jobs  int
	logs  string
	built string // targets, separated by spaces
	flags string // for go test
}

func main() {
	var o options
	flag.IntVar(&o.jobs, "jobs", 2, "number of parts that run at the same time")
	flag.StringVar(&o.logs, "logs", "bin/test", "folder for the output of the parts")
	flag.StringVar(&o.built, "built", "", "targets, separated by spaces, that the parts must not build again")
	flag.StringVar(&o.flags, "flags", "", "flags for go test in all parts")
	flag.Parse()
	if flag.NArg() == 0 || o.jobs < 1 {
		fmt.Fprintln(os.Stderr, "usage: suite [-jobs N] [-logs DIR] [-built TARGETS] [-flags TESTFLAGS] TARGET...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed, err := run(ctx, flag.Args(), o, newDisplay(os.Stdout))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}

// run runs all parts, even after one has failed, and returns the number of failed parts.
func run(ctx context.Context, targets []string, o options, d *display) (int, error) {
	if err := os.MkdirAll(o.logs, 0o755); err != nil {
		return 0, err
	}
	queue := make(chan string, len(targets))
	for _, target := range targets {
		queue <- target
	}
	close(queue)
	started, ended := make(chan string), make(chan result)
	for range o.jobs {
		go func() {
			for target := range queue {
				started <- target
				ended <- runPart(ctx, target, o)
			}
		}()
	}
	return d.follow(len(targets), started, ended), ctx.Err()
}

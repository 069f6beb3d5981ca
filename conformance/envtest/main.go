// Command envtest shows that Koboshi can replace stock etcd and kube-apiserver. It runs
// controller-runtime's own test suites with Koboshi and with the stock programs, and prints
// the specs that differ.
//
//	go run . [-stock DIR] [-koboshi DIR] [-suites pkg/client,pkg/cache] [-repeat N] [-short]
//
// Run it in its own folder, whose go.mod selects the release of
// controller-runtime. Without -stock, it builds the stock programs from the same modules
// as Koboshi itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/conformance/envtest/internal/assets"
	"github.com/koboshi-dev/koboshi/conformance/envtest/internal/suite"
	"github.com/koboshi-dev/koboshi/conformance/envtest/internal/verdict"
)

// root is the module from which Koboshi and the stock programs are built.
const root = "../.."

// errDifferent is handled separately, because the report has already been printed.
var errDifferent = errors.New("koboshi differs from stock")

type options struct {
	stock, koboshi, suites, keep string

	repeat, retries int
	seed            int64
	timeout         time.Duration
	short           bool
}

func main() {
	var o options
	flag.StringVar(&o.stock, "stock", "", "folder with stock etcd, kube-apiserver and kubectl (default: build them)")
	flag.StringVar(&o.koboshi, "koboshi", "", "folder with Koboshi's etcd, kube-apiserver and kubectl (default: what "+root+"/bin/koboshi envtest path prints)")
	flag.StringVar(&o.suites, "suites", "", "packages to run, separated by commas, such as pkg/client (default: all that start a control plane)")
	flag.IntVar(&o.repeat, "repeat", 1, "number of times that each suite runs on each side")
	flag.IntVar(&o.retries, "retries", 2, "how often to repeat a suite on both sides, at most, as long as the results of a spec differ; this shows whether the difference is chance")
	flag.Int64Var(&o.seed, "seed", time.Now().Unix(), "seed for the order in which Ginkgo runs the specs")
	flag.DurationVar(&o.timeout, "timeout", 15*time.Minute, "time limit for one suite on one side")
	flag.BoolVar(&o.short, "short", false, "run only the suites that are fast enough for CI")
	flag.StringVar(&o.keep, "keep", "", "folder in which to keep the outputs of all runs (default: none)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "envtest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, stdout, progress io.Writer) (err error) {
	if o.repeat < 1 || o.retries < 0 {
		return errors.New("-repeat must be at least 1, and -retries must not be negative")
	}
	work, err := os.MkdirTemp("", "koboshi-envtest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	pair, err := folders(ctx, o, work, progress)
	if err != nil {
		return err
	}
	source, err := suite.Checkout(ctx, filepath.Join(work, "controller-runtime"))
	if err != nil {
		return err
	}
	suites, err := source.Suites(ctx, selected(o))
	if err != nil {
		return err
	}
	logs := filepath.Join(work, "logs")
	if o.keep != "" {
		if logs, err = filepath.Abs(o.keep); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "controller-runtime %s: %d suites, seed %d\n", source.Version, len(suites), o.seed)
	c := comparison{options: o, pair: pair, logs: logs, progress: progress}
	report, err := c.all(ctx, suites)
	if err != nil {
		return err
	}
	report.Write(stdout)
	if report.Different() {
		return errDifferent
	}
	return nil
}

// folders finds or builds the folders of programs for both sides.
func folders(ctx context.Context, o options, work string, progress io.Writer) (pair [2]string, err error) {
	if pair[verdict.Koboshi], err = assets.Koboshi(ctx, o.koboshi, filepath.Join(root, "bin", "koboshi")); err != nil {
		return pair, err
	}
	if pair[verdict.Stock] = o.stock; o.stock == "" {
		pair[verdict.Stock] = filepath.Join(work, "stock")
		if err = assets.BuildStock(ctx, root, pair[verdict.Stock], progress); err != nil {
			return pair, err
		}
	}
	pair[verdict.Stock], err = assets.Complete(pair[verdict.Stock])
	return pair, err
}

func selected(o options) []string {
	switch {
	case o.suites != "":
		return strings.Split(o.suites, ",")
	case o.short:
		return suite.Short
	}
	return nil
}

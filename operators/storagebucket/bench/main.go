// Command bench compares the StorageBucket operator with the usual design (see bench/baseline). It
// runs the two operators in turn on the same machine, with many buckets in one store. For each of
// them, it measures the CPU time and memory, the delay of the probes, the load on the store and the
// API server, and the effects of an outage of the store. `make bench-storagebucket` in the root of
// the repository builds everything that the bench needs.
//
// On a shared machine, a single figure means little; quote the ratios between the
// operators. The bench needs Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// The operators to compare.
const (
	ours     = "ours"
	baseline = "baseline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	log.SetLogger(zap.New(zap.WriteTo(io.Discard))) // drop the logs of the libraries: all errors that matter are returned
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the command-line flags.
type options struct {
	sizes       []int
	operators   []string
	rounds      int
	interval    time.Duration
	window      time.Duration
	settle      time.Duration
	delay       time.Duration
	workers     int
	short       bool
	output      string
	managerArgs []string

	koboshi, manager, baselineBinary, storeBinary, crds string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	var sizes, only, managerArgs string
	f.StringVar(&sizes, "n", "1000,10000", "numbers of buckets, separated by commas")
	f.StringVar(&only, "only", "", "measure only one of the two operators: ours or baseline")
	f.IntVar(&o.rounds, "rounds", 1, "number of measurements of each operator and size; medians are reported")
	f.DurationVar(&o.interval, "interval", time.Minute, "time between two probes of a bucket")
	f.DurationVar(&o.window, "window", 0, "length of the measurement, a multiple of the interval (default 2 intervals)")
	f.DurationVar(&o.settle, "settle", 0, "time to wait before measuring, once all buckets have been probed (default 1 interval)")
	f.DurationVar(&o.delay, "delay", 2*time.Millisecond, "time the store takes to answer")
	f.IntVar(&o.workers, "workers", 64, "number of concurrent reconciles in each operator")
	f.BoolVar(&o.short, "short", false, "a quick run that only tests the benchmark: 200 buckets, 5 s")
	f.StringVar(&o.output, "o", "", "file to write all figures to, in JSON")
	f.StringVar(&managerArgs, "manager-args", "", "additional flags, separated by spaces, for the operator under test")
	f.StringVar(&o.koboshi, "koboshi", "../../bin/koboshi", "the program that runs the control plane")
	f.StringVar(&o.manager, "manager", "bin/manager", "the operator under test")
	f.StringVar(&o.baselineBinary, "baseline", "bin/bench-baseline", "the operator to compare with, built from ./bench/baseline")
	f.StringVar(&o.storeBinary, "store", "bin/bench-store", "the store, built from ./bench/store")
	f.StringVar(&o.crds, "crds", "config/crd/bases", "folder with the CRDs")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.short {
		sizes, o.interval, o.rounds = "200", 5*time.Second, 1
	}
	o.managerArgs = strings.Fields(managerArgs)
	return o, o.complete(sizes, only)
}

// complete checks the flags, and sets the options that depend on others.
func (o *options) complete(sizes, only string) error {
	for s := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 999_999 {
			return fmt.Errorf("-n: %q is not a number of buckets (1 to 999999)", s)
		}
		o.sizes = append(o.sizes, n)
	}
	switch only {
	case "":
		o.operators = []string{baseline, ours}
	case ours, baseline:
		o.operators = []string{only}
	default:
		return fmt.Errorf("-only: %q is neither %s nor %s", only, ours, baseline)
	}
	if o.interval < time.Second || o.rounds < 1 || o.workers < 1 {
		return errors.New("-interval must be at least 1s, and -rounds and -workers must be at least 1")
	}
	if o.window == 0 {
		o.window = 2 * o.interval
	}
	if o.settle == 0 {
		o.settle = o.interval
	}
	if o.window < o.interval || o.window%o.interval != 0 {
		return fmt.Errorf("-window: %v is not a multiple of the interval %v, so a partial interval would be measured", o.window, o.interval)
	}
	return nil
}

// commandOf returns the command that starts an operator.
func (o *options) commandOf(operator, kubeconfig, metrics string) (binary string, args []string) {
	args = []string{
		"--kubeconfig=" + kubeconfig,
		"--metrics-bind-address=" + metrics,
		"--metrics-secure=false",
		fmt.Sprintf("--max-concurrent-reconciles=%d", o.workers),
	}
	if operator == baseline {
		return o.baselineBinary, append(args, "--interval="+o.interval.String())
	}
	args = append(args, "--leader-elect=false", "--allowed-endpoints=127.0.0.0/8")
	return o.manager, append(args, o.managerArgs...)
}

// command measures everything and reports it.
func command(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	for _, path := range []string{o.koboshi, o.manager, o.baselineBinary, o.storeBinary, o.crds} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w: run make bench-storagebucket in the root of the repository to build the missing file", err)
		}
	}
	report := newReport(o)
	err = report.fill(ctx, o)
	report.table(out) // the report is also printed if some measurements failed
	return errors.Join(err, report.missing())
}

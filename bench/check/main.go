// Command check measures how many faults koboshi check injects per minute. It compares this
// rate with tests that start a fresh stock envtest and a fresh controller process for each
// fault. It also measures how much the recording of all requests slows the controller down.
//
//	cd bench && go run ./check -o ../docs/bench/check.json
//
// The figures of one run mean little on a shared machine; quote the ratios instead. The
// program needs Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/koboshi-dev/koboshi/bench/internal/command"
	"github.com/koboshi-dev/koboshi/bench/internal/contestant"
	"github.com/koboshi-dev/koboshi/bench/internal/machine"
)

func main() { command.Main("check", run) }

// options holds the flags.
type options struct {
	rounds, sample, reconciles, workers int
	budget                              time.Duration
	root, koboshi, bugs, stock          string
	bug                                 string // the folder of the controller
	output, date                        string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("check", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 3, "number of rounds; each round measures koboshi check and the runs with stock envtest")
	f.IntVar(&o.sample, "sample", 4, "number of runs with stock envtest per round, each with a fresh envtest and controller process")
	f.DurationVar(&o.budget, "budget", time.Minute, "time limit, in each round, for the runs of koboshi check with faults")
	f.IntVar(&o.reconciles, "reconciles", 4000, "number of reconciles with which the cost of recording is measured; 0 skips this measurement")
	f.IntVar(&o.workers, "workers", runtime.NumCPU(), "number of parallel runs with stock envtest; koboshi check chooses its own number")
	f.StringVar(&o.root, "root", "..", "folder of the root module")
	f.StringVar(&o.koboshi, "koboshi", "", "the koboshi program (default: bin/koboshi of the root module)")
	f.StringVar(&o.bugs, "bugs", "", "the program with the controllers (default: build it as bin/bugs)")
	f.StringVar(&o.stock, "stock", "", "folder with stock etcd, kube-apiserver and kubectl\n(default: build them into bin/stock)")
	f.StringVar(&o.output, "o", "", "file to write all samples to, as JSON")
	f.StringVar(&o.date, "date", time.Now().UTC().Format(time.DateOnly), "date to write into the JSON")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; see -help", f.Arg(0))
	}
	if o.rounds < 1 || o.sample < 1 || o.workers < 1 || o.reconciles < 0 {
		return o, errors.New("-rounds, -sample and -workers must be at least 1, and -reconciles must not be negative")
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return o, err
	}
	if o.koboshi == "" {
		o.koboshi = filepath.Join(o.root, "bin", "koboshi")
	}
	for _, path := range []*string{&o.koboshi, &o.bugs, &o.stock} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return o, err
		}
	}
	o.bug = filepath.Join(o.root, "bugs", "b1-first-exists")
	return o, nil
}

func run(ctx context.Context, args []string) error {
	log.SetLogger(logr.Discard()) // otherwise controller-runtime prints a warning after 30 s
	o, err := parse(args)
	if err != nil {
		return err
	}
	// The machine is described before anything is built, because building would add to the
	// measured load.
	r := report{Date: o.date, Machine: machine.Describe(), Workers: o.workers}
	if warning := machine.Warning(r.Machine); warning != "" {
		fmt.Fprintln(os.Stderr, "warning:", warning)
		r.Comment = "Other programs were using the machine during the run, so the figures are unreliable."
	}
	work, err := os.MkdirTemp("", "koboshi-bench-check-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := o.build(ctx); err != nil {
		return err
	}
	if err := o.speed(ctx, work, &r); err != nil {
		return err
	}
	if err := o.recording(ctx, work, &r); err != nil {
		return err
	}
	if o.output != "" {
		if err := r.write(o.output); err != nil {
			return err
		}
	}
	return r.table(os.Stdout)
}

// build builds the programs that the flags do not name.
func (o *options) build(ctx context.Context) (err error) {
	if _, err := exec.LookPath(o.koboshi); err != nil {
		return fmt.Errorf("finding the koboshi program: %w; run make build, or name the program with -koboshi", err)
	}
	if o.stock == "" {
		if o.stock, err = contestant.BuildStock(ctx, o.root, os.Stderr); err != nil {
			return err
		}
	}
	if err := (contestant.Contestant{Name: contestant.Stock, Assets: o.stock}).Check(); err != nil {
		return err
	}
	if o.bugs != "" {
		return nil
	}
	o.bugs = filepath.Join(o.root, "bin", "bugs")
	fmt.Fprintln(os.Stderr, "building the controller")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", o.bugs, ".")
	cmd.Dir, cmd.Env = filepath.Join(o.root, "bugs"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the controller: %w\n%s", err, out)
	}
	return nil
}

// speed injects faults in three ways in each round: with koboshi check, with one fresh
// stock envtest after the other, and with several stock envtests in parallel. Each round
// starts with a different one of the three ways.
func (o *options) speed(ctx context.Context, work string, r *report) error {
	// The first run fills the caches and is not counted.
	converged, err := o.fresh(ctx, work, false)
	if err != nil {
		return err
	}
	r.ConvergeMS = float64(converged) / float64(time.Millisecond)
	for n := range o.rounds {
		var s round
		turns := []func() error{
			func() (err error) { s.Koboshi, err = o.check(ctx, work, uint64(n+1)); return err },
			func() (err error) { s.Stock, err = o.obvious(ctx, work, 1); return err },
			func() (err error) { s.StockAtOnce, err = o.obvious(ctx, work, o.workers); return err },
		}
		for i := range turns {
			if err := turns[(i+n)%len(turns)](); err != nil {
				return err
			}
		}
		r.Rounds = append(r.Rounds, s)
		fmt.Fprintf(os.Stderr, "round %d, faults per minute: koboshi check %.0f, stock envtest %.1f, stock envtest with %d in parallel %.1f\n",
			n+1, s.Koboshi.perMinute(), s.Stock.perMinute(), o.workers, s.StockAtOnce.perMinute())
	}
	return nil
}

// Command dev measures how long koboshi dev takes from a saved file to the first reconcile by
// the new code, in the StorageBucket operator. It compares this time with a script that runs
// what kubebuilder's documentation tells a person to run after an edit: make manifests generate
// fmt vet build, apply the CRDs, end the manager, start it again. Both loops run in alternation
// in copies of the operator.
//
//	cd bench && go run ./dev -rounds 10 -o ../docs/bench/dev.json
//
// Everything is built and run once before anything is measured. The figures of one run mean
// little on a shared machine; quote the ratios instead. The program needs Linux.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/bench/internal/command"
	"github.com/koboshi-dev/koboshi/bench/internal/contestant"
	"github.com/koboshi-dev/koboshi/bench/internal/family"
	"github.com/koboshi-dev/koboshi/bench/internal/machine"
)

func main() { command.Main("dev", run) }

// options holds the flags.
type options struct {
	rounds                 int
	root, koboshi, kubectl string
	output, date           string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("dev", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 10, "number of rounds, not counting one warm-up; in each round, each loop makes one edit of each kind")
	f.StringVar(&o.root, "root", "..", "folder of the root module")
	f.StringVar(&o.koboshi, "koboshi", "", "the koboshi program (default: bin/koboshi of the root module)")
	f.StringVar(&o.kubectl, "kubectl", "", "the kubectl of kubebuilder's loop (default: bin/stock/kubectl of the root module)")
	f.StringVar(&o.output, "o", "", "file to write all samples to, as JSON")
	f.StringVar(&o.date, "date", time.Now().UTC().Format(time.DateOnly), "date to write into the JSON")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; see -help", f.Arg(0))
	}
	if o.rounds < 1 {
		return o, errors.New("-rounds must be at least 1")
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return o, err
	}
	if o.koboshi == "" {
		o.koboshi = filepath.Join(o.root, "bin", "koboshi")
	}
	if o.kubectl == "" {
		o.kubectl = filepath.Join(o.root, "bin", "stock", "kubectl")
	}
	for _, path := range []*string{&o.koboshi, &o.kubectl} {
		if *path, err = filepath.Abs(*path); err != nil {
			return o, err
		}
	}
	return o, nil
}

// bench holds what both loops share.
type bench struct {
	options
	id            string // of this run
	controllerGen string
	work          string   // a temporary folder
	env           []string // the environment of all programs
}

func run(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	// The machine is described before anything is built, because building would add to the
	// measured load.
	r := report{Date: o.date, Machine: machine.Describe()}
	if warning := machine.Warning(r.Machine); warning != "" {
		fmt.Fprintln(os.Stderr, "warning:", warning)
		r.Comment = "Other programs used the machine during the run: the figures are unreliable."
	}
	b := &bench{options: o, id: rand.Text()}
	if r.Settings, err = b.prepare(ctx); err != nil {
		return err
	}
	mark := "KOBOSHI_BENCH_RUN=" + b.id
	b.env = append(b.env, mark)
	defer func() {
		_, ended := family.Family{Mark: mark}.End(stopTimeout)
		err = errors.Join(err, ended, os.RemoveAll(b.work))
	}()
	if r.Rounds, err = b.measure(ctx); err != nil {
		return err
	}
	if o.output != "" {
		if err := r.write(o.output); err != nil {
			return err
		}
	}
	return r.table(os.Stdout)
}

// prepare finds the programs, and returns the settings that affect the figures.
func (b *bench) prepare(ctx context.Context) (s settings, err error) {
	if _, err := exec.LookPath(b.koboshi); err != nil {
		return s, fmt.Errorf("finding the koboshi program: %w; run make build, or name the program with -koboshi", err)
	}
	if _, err := exec.LookPath(b.kubectl); err != nil {
		return s, fmt.Errorf("finding kubectl: %w; run make stock, or name the program with -kubectl", err)
	}
	if b.controllerGen, err = contestant.ControllerGen(ctx, b.root); err != nil {
		return s, err
	}
	cache, err := contestant.GoEnv(ctx, b.root, "GOCACHE")
	if err != nil {
		return s, err
	}
	if s, err = b.settings(ctx); err != nil {
		return s, err
	}
	if b.work, err = os.MkdirTemp("", "koboshi-bench-dev-"); err != nil {
		return s, err
	}
	// koboshi's fingerprints of generated files and kubectl's cache of API discovery are kept in
	// this folder, so that a run does not depend on earlier runs.
	b.env = append(os.Environ(), "GOCACHE="+cache,
		"XDG_CACHE_HOME="+filepath.Join(b.work, "cache"), "KUBECACHEDIR="+filepath.Join(b.work, "kube"))
	return s, nil
}

func (b *bench) settings(ctx context.Context) (s settings, err error) {
	s.Versions = map[string]string{}
	for name, command := range map[string][]string{
		"koboshi":        {b.koboshi, "version"},
		"controller-gen": {b.controllerGen, "--version"},
		"kubectl":        {b.kubectl, "version", "--client"},
	} {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
		if err != nil {
			return s, fmt.Errorf("asking %s for its version: %w", command[0], err)
		}
		s.Versions[name], _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	}
	if s.CGO, err = contestant.GoEnv(ctx, b.root, "CGO_ENABLED"); err != nil {
		return s, err
	}
	s.GoFlags, err = contestant.GoEnv(ctx, b.root, "GOFLAGS")
	return s, err
}

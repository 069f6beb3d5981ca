package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/bench/internal/contestant"
	"github.com/koboshi-dev/koboshi/bench/internal/machine"
	"github.com/koboshi-dev/koboshi/bench/internal/measure"
	"github.com/koboshi-dev/koboshi/bench/internal/result"
	"github.com/koboshi-dev/koboshi/bench/internal/worker"
)

// tournament runs each measure with each contestant, round after round.
func tournament(ctx context.Context, o options) (report result.Report, err error) {
	measures, err := chosen(o.only)
	if err != nil {
		return report, err
	}
	// The machine is described before anything is built, because building would add to the
	// measured load.
	where := machine.Describe()
	if warning := machine.Warning(where); warning != "" {
		fmt.Fprintln(os.Stderr, "warning:", warning)
	}
	work, err := os.MkdirTemp("", "koboshi-bench-")
	if err != nil {
		return report, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	contestants, err := line(ctx, o)
	if err != nil {
		return report, err
	}
	bout := measure.Bout{Binary: o.binary, Root: o.root, Verbose: o.verbose}
	if measures, err = prepareReset(ctx, o, work, measures, &bout); err != nil {
		return report, err
	}
	var corners []*worker.Corner
	for _, c := range contestants {
		corner, err := worker.NewCorner(c, work)
		if err != nil {
			return report, err
		}
		defer func() { err = errors.Join(err, corner.Close()) }()
		corners = append(corners, corner)
	}
	if report, err = describe(ctx, o, where, contestants); err != nil {
		return report, err
	}
	for round := range o.rounds + 1 {
		for _, m := range measures {
			values, err := once(ctx, round, m, corners, bout)
			if err != nil {
				return report, err
			}
			if round > 0 { // the first round only fills the caches
				add(&report, m, values)
			}
		}
	}
	return report, nil
}

func chosen(only []string) ([]measure.Measure, error) {
	if len(only) == 0 {
		return slices.Clone(measure.All), nil
	}
	var measures []measure.Measure
	for _, name := range only {
		m, err := measure.Lookup(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		measures = append(measures, m)
	}
	return measures, nil
}

// line returns the contestants. To add a contestant, add it to the list in this function.
func line(ctx context.Context, o options) (contestants []contestant.Contestant, err error) {
	if o.koboshi == "" {
		if o.koboshi, err = contestant.FromBinary(ctx, o.binary); err != nil {
			return nil, err
		}
	}
	if o.stock == "" {
		if o.stock, err = contestant.BuildStock(ctx, o.root, os.Stderr); err != nil {
			return nil, err
		}
	}
	contestants = []contestant.Contestant{
		{Name: contestant.Stock, Assets: o.stock},
		{Name: contestant.Koboshi, Assets: o.koboshi},
	}
	for _, c := range contestants {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	return contestants, nil
}

// prepareReset builds the benchmark of the reset, or removes the measure reset from
// measures if the benchmark cannot be built.
func prepareReset(ctx context.Context, o options, work string, measures []measure.Measure, b *measure.Bout) ([]measure.Measure, error) {
	wanted := func(m measure.Measure) bool { return m.Name == "reset" }
	if !slices.ContainsFunc(measures, wanted) {
		return measures, nil
	}
	fmt.Fprintln(os.Stderr, "building the reset benchmark")
	test, err := contestant.BuildReset(ctx, o.root, work, measure.ResetBenchmark)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || test == "" {
		fmt.Fprintf(os.Stderr, "reset is not measured: internal/controlplane has no benchmark %s, or it cannot be built\n", measure.ResetBenchmark)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return slices.DeleteFunc(measures, wanted), nil
	}
	b.ResetTest = test
	return measures, nil
}

// An outcome is the result of one contestant in one round.
type outcome struct {
	values measure.Values
	err    error
}

// once lets each contestant run the measure once. The order of the contestants alternates between
// rounds, because caches and a machine that warms up would otherwise favor one side.
func once(ctx context.Context, round int, m measure.Measure, corners []*worker.Corner, b measure.Bout) (map[string]outcome, error) {
	order := slices.Clone(corners)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	outcomes := map[string]outcome{}
	for _, corner := range order {
		name := corner.Contestant.Name
		values, err := corner.Run(ctx, m, b)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("interrupted in round %d; no report was written", round)
		}
		outcomes[name] = outcome{values, err}
		progress(round, m, name, values, err)
	}
	return outcomes, nil
}

func progress(round int, m measure.Measure, name string, values measure.Values, err error) {
	which := fmt.Sprintf("round %d", round)
	if round == 0 {
		which = "warm-up"
	}
	var parts []string
	for _, f := range m.Figures {
		if v, ok := values[f.Name]; ok {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Name, result.Short(v), f.Unit)))
		}
	}
	if err != nil {
		parts = append(parts, "failed: "+err.Error())
	}
	fmt.Fprintf(os.Stderr, "%s, %s: %s\n", which, name, strings.Join(parts, ", "))
}

// add adds the outcomes of a round to the report.
func add(r *result.Report, m measure.Measure, outcomes map[string]outcome) {
	for _, f := range m.Figures {
		i := slices.IndexFunc(r.Figures, func(known result.Figure) bool { return known.Name == f.Name })
		if i < 0 {
			i = len(r.Figures)
			r.Figures = append(r.Figures, result.Figure{
				Name: f.Name, Label: f.Label, Unit: f.Unit, More: f.More, Note: f.Note, Failed: map[string]int{},
			})
		}
		round := map[string]float64{}
		for name, o := range outcomes {
			if v, ok := o.values[f.Name]; ok && o.err == nil {
				round[name] = v
			} else {
				r.Figures[i].Failed[name]++
			}
		}
		r.Figures[i].Rounds = append(r.Figures[i].Rounds, round)
	}
}

// describe returns a report that contains everything except the figures.
func describe(ctx context.Context, o options, where result.Machine, contestants []contestant.Contestant) (r result.Report, err error) {
	r = result.Report{Date: o.date, Rounds: o.rounds, Machine: where, Versions: map[string]string{}}
	if machine.Warning(where) != "" {
		r.Comment = "Other programs were using the machine during the run, so the figures are unreliable."
	}
	for _, c := range contestants {
		r.Contestants = append(r.Contestants, c.Name)
		for _, program := range []string{"etcd", "kube-apiserver"} {
			r.Versions[c.Name+" "+program] = version(ctx, filepath.Join(c.Assets, program), "--version")
		}
	}
	r.Versions["koboshi"] = version(ctx, o.binary, "version")
	if r.Versions["kubernetes"], err = contestant.ModuleVersion(ctx, o.root, "k8s.io/kubernetes"); err != nil {
		return r, err
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range build.Deps {
			if dep.Path == "sigs.k8s.io/controller-runtime" {
				r.Versions["controller-runtime"] = dep.Version
			}
		}
	}
	return r, nil
}

// version returns the first line that a program prints when it is run with the argument.
func version(ctx context.Context, program, argument string) string {
	out, err := exec.CommandContext(ctx, program, argument).Output()
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return first
}

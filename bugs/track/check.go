package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// report holds the parts of koboshi's JSON report that are needed here.
type report struct {
	Runs         int       `json:"runs"`
	References   int       `json:"references"`
	Seconds      float64   `json:"seconds"`
	Findings     []finding `json:"findings"`
	Inconclusive []any     `json:"inconclusive"`
	LeftOut      []any     `json:"leftOut"`
}

type finding struct {
	Verdict string `json:"verdict"`
	Fault   *struct {
		Kind string `json:"kind"`
	} `json:"fault"`
	Sentence          string  `json:"sentence"`
	Reproduced        int     `json:"reproduced"`
	Attempts          int     `json:"attempts"`
	FoundAfterRuns    int     `json:"foundAfterRuns"`
	FoundAfterSeconds float64 `json:"foundAfterSeconds"`
}

// kind returns the kind of the fault, or an empty string if none was needed.
func (f *finding) kind() string {
	if f.Fault == nil {
		return ""
	}
	return f.Fault.Kind
}

// horizon limits how long each rest is watched. The controllers of most bugs pause for less
// than a second, so the default of koboshi check would only cost time.
const horizon = "3s"

// row is the result for a bug and its twin with one seed.
type row struct {
	Bug   string `json:"bug"`
	Name  string `json:"name"`
	Class string `json:"class"`
	Seed  uint64 `json:"seed"`

	// Clean reports whether the controller has no bug and serves as its own twin.
	Clean bool `json:"clean,omitempty"`
	// Found reports whether the verdict is one of the correct ones for the bug.
	Found      bool    `json:"found"`
	Verdict    string  `json:"verdict,omitempty"`
	Fault      string  `json:"fault,omitempty"`
	Sentence   string  `json:"sentence,omitempty"`
	Runs       int     `json:"runs"`
	Seconds    float64 `json:"seconds"`
	Reproduced int     `json:"reproduced"`
	Attempts   int     `json:"attempts"`

	TwinRuns         int     `json:"twinRuns"`
	TwinSeconds      float64 `json:"twinSeconds"`
	TwinInconclusive int     `json:"twinInconclusive"`
	TwinLeftOut      int     `json:"twinLeftOut"`
	TwinBlamed       int     `json:"twinBlamed"`

	// Wrong lists the reasons why the row is a failure. Remarks do not make the row a
	// failure.
	Wrong   []string `json:"wrong,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
}

// row checks a bug and its twin.
func (o *options) row(ctx context.Context, b *bug, seed uint64) row {
	r := row{Bug: b.ID, Name: b.name(), Class: b.Class, Seed: seed, Clean: b.clean}
	if !b.clean {
		o.checkBug(ctx, b, &r)
	}
	if ctx.Err() == nil {
		o.checkTwin(ctx, b, &r)
	}
	return r
}

// checkBug runs faults until the first finding, which must be the bug.
func (o *options) checkBug(ctx context.Context, b *bug, r *row) {
	rep, err := o.check(ctx, b, r.Seed, false)
	if err != nil {
		r.Wrong = append(r.Wrong, err.Error())
		return
	}
	if len(rep.Findings) == 0 {
		r.Wrong = append(r.Wrong, fmt.Sprintf("missed in %d runs, %d inconclusive, %d left out", rep.Runs, len(rep.Inconclusive), len(rep.LeftOut)))
		return
	}
	f := rep.Findings[0]
	r.Verdict, r.Fault, r.Sentence = f.Verdict, f.kind(), f.Sentence
	r.Runs, r.Seconds = f.FoundAfterRuns, f.FoundAfterSeconds
	r.Reproduced, r.Attempts = f.Reproduced, f.Attempts
	r.Found = slices.Contains(b.Verdicts, f.Verdict)
	if !r.Found {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s is not one of %s: %s", f.Verdict, strings.Join(b.Verdicts, ", "), f.Sentence))
	}
	if f.Reproduced < f.Attempts {
		r.Remarks = append(r.Remarks, fmt.Sprintf("reproduced %d of %d", f.Reproduced, f.Attempts))
	}
	if len(b.Finds) > 0 && !slices.Contains(b.Finds, f.kind()) {
		r.other(o.strict, fmt.Sprintf("found by %q instead of %s: %s", f.kind(), strings.Join(b.Finds, ", "), f.Sentence))
	}
}

// other records that a bug was found by an unexpected fault.
func (r *row) other(strict bool, text string) {
	if strict {
		r.Wrong = append(r.Wrong, text)
	} else {
		r.Remarks = append(r.Remarks, text)
	}
}

// checkTwin runs all planned faults on the twin, for which koboshi check must report no
// finding.
func (o *options) checkTwin(ctx context.Context, b *bug, r *row) {
	rep, err := o.check(ctx, b, r.Seed, true)
	if err != nil {
		r.Wrong = append(r.Wrong, "the twin: "+err.Error())
		return
	}
	r.TwinRuns, r.TwinSeconds, r.TwinBlamed = rep.Runs, rep.Seconds, len(rep.Findings)
	r.TwinInconclusive, r.TwinLeftOut = len(rep.Inconclusive), len(rep.LeftOut)
	for _, f := range rep.Findings {
		r.Wrong = append(r.Wrong, fmt.Sprintf("false finding in the twin: %s: %s", f.Verdict, f.Sentence))
	}
	if r.TwinInconclusive > 0 {
		r.Remarks = append(r.Remarks, fmt.Sprintf("the twin: %d runs inconclusive", r.TwinInconclusive))
	}
}

// check runs koboshi check once. Findings are not an error.
func (o *options) check(ctx context.Context, b *bug, seed uint64, repaired bool) (*report, error) {
	folder, err := os.MkdirTemp("", "track-"+b.ID+"-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "report.json")

	cmd := exec.CommandContext(ctx, o.koboshi, o.arguments(b, seed, repaired, folder)...)
	cmd.Dir = b.dir
	if os.Getenv("KUBECTL") == "" { // used by controllers that are shell scripts
		cmd.Env = append(os.Environ(), "KUBECTL="+o.koboshi+" kubectl")
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if o.verbose {
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	}
	err = cmd.Run()
	var exit *exec.ExitError
	// If too many runs were inconclusive, koboshi check exits with code 2 but still writes a
	// report. Here, this code is not an error, because the report contains everything that was
	// found until then.
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	if _, missing := os.Stat(file); err != nil && code != 1 && (code != 2 || missing != nil) {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, tail(out.String()))
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w; output of koboshi: %s", err, tail(out.String()))
	}
	rep := &report{}
	if err := json.Unmarshal(data, rep); err != nil {
		return nil, fmt.Errorf("reading the report on %s: %w", b.ID, err)
	}
	return rep, nil
}

// arguments returns the arguments of koboshi. Findings go into the temporary folder,
// because koboshi check would otherwise try the faults of earlier findings first.
func (o *options) arguments(b *bug, seed uint64, repaired bool, folder string) []string {
	args := []string{
		"check",
		"--crds", filepath.Join(b.dir, "crd.yaml"),
		"--scenario", filepath.Join(b.dir, "scenario.yaml"),
		"--seed", strconv.FormatUint(seed, 10),
		"--findings", filepath.Join(folder, "findings"),
		"-o", "json=" + filepath.Join(folder, "report.json"),
		"--workers", "2",
	}
	if !slices.ContainsFunc(b.Args, func(a string) bool { return strings.HasPrefix(a, "--profile") }) {
		args = append(args, "--profile", "gc")
	}
	if !slices.ContainsFunc(b.Args, func(a string) bool {
		return strings.HasPrefix(a, "--horizon") || strings.HasPrefix(a, "--upgrade-from")
	}) {
		args = append(args, "--horizon", horizon)
	}
	for _, arg := range b.Args {
		// The old version of a controller is part of the same program.
		args = append(args, strings.ReplaceAll(arg, "$(BUGS)", o.bugs))
	}
	switch {
	case !repaired:
		args = append(args, "--stop-at-first")
	case o.budget > 0:
		args = append(args, "--budget", o.budget.String())
	}
	return append(append(args, "--"), o.command(b, repaired)...)
}

// command returns the command that starts the controller or its twin.
func (o *options) command(b *bug, repaired bool) []string {
	switch {
	case repaired && len(b.Repaired) > 0:
		return b.Repaired
	case repaired:
		return []string{o.bugs, b.ID, "--repaired"}
	case len(b.Command) > 0:
		return b.Command
	}
	return []string{o.bugs, b.ID}
}

// build builds the program with the controllers.
func build(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", to, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// tail returns the last part of a program's output.
func tail(text string) string {
	const most = 2000
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return text
}

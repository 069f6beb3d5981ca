package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// checked holds the fields of koboshi check's report that the benchmark reads.
type checked struct {
	Runs          int
	References    int
	Confirmations int
	Seconds       float64
	Findings      []json.RawMessage
	Tried         []struct{ Pruned int }
	Scenarios     []struct{ Seconds float64 }
}

// firstFault is the start of the line that koboshi check prints before the first fault.
const firstFault = "injecting faults"

// check runs koboshi check with the budget, and measures the time from
// the first fault to the end of the program.
func (o *options) check(ctx context.Context, work string, seed uint64) (s series, err error) {
	dir, err := os.MkdirTemp(work, "check-")
	if err != nil {
		return s, err
	}
	file := filepath.Join(dir, "report.json")
	cmd := exec.CommandContext(ctx, o.koboshi, "check", "--profile", "gc",
		"--crds", filepath.Join(o.bug, "crd.yaml"), "--scenario", filepath.Join(o.bug, "scenario.yaml"),
		"--seed", strconv.FormatUint(seed, 10), "--budget", o.budget.String(),
		"--findings", filepath.Join(dir, "findings"), "-o", "json="+file, "--", o.bugs, "b1", "--repaired")
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return s, err
	}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	began, said := began(stderr)
	err = cmd.Wait()
	took := time.Since(began)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return s, fmt.Errorf("running koboshi check: %w\n%s", err, said)
	}
	if began.IsZero() {
		return s, fmt.Errorf("koboshi check did not print %q, so the time of its first fault is unknown:\n%s", firstFault, said)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("koboshi check wrote no report: %w\n%s", err, said)
	}
	return read(data, took)
}

// began reads the standard error of koboshi check to its end. It returns the text and the
// time at which the first fault started.
func began(stderr io.Reader) (at time.Time, said string) {
	var all strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if at.IsZero() && strings.HasPrefix(lines.Text(), firstFault) {
			at = time.Now()
		}
		all.WriteString(lines.Text() + "\n")
	}
	return at, all.String()
}

// read counts the completed runs. It excludes reference runs, confirmations, and runs
// that were pruned because they reached a known state.
func read(data []byte, took time.Duration) (s series, err error) {
	var c checked
	if err := json.Unmarshal(data, &c); err != nil {
		return s, fmt.Errorf("reading the report of koboshi check: %w", err)
	}
	s = series{Runs: c.Runs - c.References - c.Confirmations, Seconds: took.Seconds(), Findings: len(c.Findings), AllSeconds: c.Seconds}
	for _, kind := range c.Tried {
		s.Runs -= kind.Pruned
		s.Pruned += kind.Pruned
	}
	if s.Runs < 1 {
		return s, errors.New("koboshi check completed no run with a fault; use a longer -budget")
	}
	for _, sc := range c.Scenarios {
		s.ReferenceMS = 1000 * sc.Seconds
	}
	return s, nil
}

package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/figures"
)

// binaries are the programs of a run, relative to the folder of this test.
var binaries = map[string]string{
	"-koboshi":  "../../../bin/koboshi",
	"-manager":  "../bin/manager",
	"-baseline": "../bin/bench-baseline",
	"-store":    "../bin/bench-store",
}

// TestShortRunObtainsEveryFigure really runs both operators. It does not check the
// values of the figures, because good values need a quiet machine and a long run.
func TestShortRunObtainsEveryFigure(t *testing.T) {
	args := []string{"-short", "-crds", "../config/crd/bases", "-o", filepath.Join(t.TempDir(), "figures.json")}
	for name, path := range binaries {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("%v: make bench-binaries builds it", err)
		}
		args = append(args, name, path)
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	var table strings.Builder
	if err := command(ctx, args, &table); err != nil {
		t.Fatalf("%v\n%s", err, table.String())
	}
	for line := range strings.Lines(table.String()) {
		if len(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}

func TestBadFlagsAreRefusedWithTheReason(t *testing.T) {
	for want, args := range map[string]string{
		"not a number of buckets": "-n 1000,many",
		"neither ours":            "-only theirs",
		"not a multiple":          "-window 90s",
		"at least 1s":             "-interval 10ms",
		"unexpected argument":     "run",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", args, err, want)
		}
	}
}

func TestMissingBinaryIsNamedWithTheNextAction(t *testing.T) {
	err := command(t.Context(), []string{"-koboshi", "/nowhere/koboshi"}, nil)
	if err == nil || !strings.Contains(err.Error(), "/nowhere/koboshi") || !strings.Contains(err.Error(), "make bench-storagebucket") {
		t.Errorf("%v", err)
	}
}

func TestOutageBeginsInTheMiddleOfAnInterval(t *testing.T) {
	for elapsed, want := range map[time.Duration]time.Duration{
		0:                30 * time.Second,
		29 * time.Second: time.Second,
		30 * time.Second: 0,
		31 * time.Second: 59 * time.Second,
		7 * time.Minute:  30 * time.Second,
	} {
		if got := untilMidInterval(elapsed, time.Minute); got != want {
			t.Errorf("after %v: %v, want %v", elapsed, got, want)
		}
	}
}

// twoRuns returns a report with one run of each operator, with the same figure in all
// rows.
func twoRuns(theirs, our Figure) *Report {
	r := &Report{operators: []string{baseline, ours}}
	for operator, f := range map[string]Figure{baseline: theirs, ours: our} {
		run := Run{Operator: operator, Buckets: claimedFrom, Figures: map[string]Figure{}}
		for _, s := range sections {
			for _, row := range s.rows {
				run.Figures[row.key] = f
			}
		}
		r.Runs = append(r.Runs, run)
	}
	return r
}

func TestClaimsAreJudgedByTheFigures(t *testing.T) {
	for _, test := range []struct {
		theirs, our Figure
		missed      int
	}{
		{10, 0, 0},
		{10, 1, 1},   // the claim about status writes
		{2, 1.5, 5},  // also the four claims about ratios
		{10, 100, 8}, // all claims
		{10, never, 8},
	} {
		var out strings.Builder
		twoRuns(test.theirs, test.our).table(&out)
		if got := strings.Count(out.String(), "MISSED"); got != test.missed {
			t.Errorf("%v and %v: %d missed, want %d\n%s", test.theirs, test.our, got, test.missed, out.String())
		}
	}
}

func TestFigureThatWasNotObtainedIsMissed(t *testing.T) {
	r := twoRuns(1, 1)
	if err := r.missing(); err != nil {
		t.Error(err)
	}
	for _, lost := range []Figure{Figure(math.NaN()), never} {
		r.Runs[0].Figures["cpu"] = lost
		if err := r.missing(); err == nil || !strings.Contains(err.Error(), "cpu of") {
			t.Errorf("%v: %v", lost, err)
		}
	}
	delete(r.Runs[0].Figures, "cpu")
	if r.missing() == nil {
		t.Error("a missing figure was not reported")
	}
}

func TestMedianOverRoundsIsByOperatorAndSize(t *testing.T) {
	r := &Report{}
	for i, f := range []Figure{3, 1, never} {
		r.Runs = append(r.Runs,
			Run{Operator: ours, Buckets: 10, Round: i, Figures: map[string]Figure{"cpu": f}},
			Run{Operator: ours, Buckets: 20, Round: i, Figures: map[string]Figure{"cpu": 100}},
			Run{Operator: baseline, Buckets: 10, Round: i, Figures: map[string]Figure{"cpu": 200}})
	}
	if got := r.median(ours, 10, "cpu"); got != 3 {
		t.Errorf("%v, want 3", got)
	}
	if got := r.median(ours, 30, "cpu"); got.obtained() {
		t.Errorf("the median of no runs is %v, want none", got)
	}
}

func TestFiguresFileHoldsNullForWhatWasNotObtained(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	r := &Report{Runs: []Run{{Figures: map[string]Figure{"a": 1.5, "b": never, "c": Figure(math.NaN())}}}}
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Runs []struct{ Figures map[string]*float64 }
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]*float64{"a": new(1.5), "b": nil, "c": nil}, back.Runs[0].Figures); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBucketsThatAreNotHealthyAreCountedUntilTheStoreIsBack(t *testing.T) {
	r := &run{Run: Run{Buckets: 10}}
	levels := []figures.Level{{At: 1, Count: 10}, {At: 2, Count: 4}, {At: 3, Count: 0}}
	want := []figures.Level{{At: 1, Count: 0}, {At: 2, Count: 6}}
	if diff := cmp.Diff(want, r.notHealthy(levels, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

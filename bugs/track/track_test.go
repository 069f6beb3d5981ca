package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryBugIsReadAndNamesRealCasesAndVerdicts(t *testing.T) {
	bugs, err := load("..", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range bugs {
		if seen[b.ID] {
			t.Errorf("two bugs have the ID %s", b.ID)
		}
		seen[b.ID] = true
		if b.Title == "" || len(b.Real) == 0 && !b.clean {
			t.Errorf("%s names no real case or has no title", b.dir)
		}
		for _, v := range b.Verdicts {
			if v != strings.ToUpper(v) {
				t.Errorf("%s: %q is not a verdict", b.ID, v)
			}
		}
		if len(b.name()) > 22 {
			t.Errorf("%s: the name is too long for the table", b.dir)
		}
	}
}

func TestShardsTogetherAreAll(t *testing.T) {
	all := []*bug{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}}
	var got []string
	for _, shard := range []string{"1/3", "2/3", "3/3"} {
		some, err := part(all, shard)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range some {
			got = append(got, b.ID)
		}
	}
	slices.Sort(got)
	if strings.Join(got, "") != "abcde" {
		t.Errorf("the shards are %v", got)
	}
	for _, wrong := range []string{"0/3", "4/3", "x"} {
		if _, err := part(all, wrong); err == nil {
			t.Errorf("the shard %s was accepted", wrong)
		}
	}
}

func TestABugThatIsMissedOrATwinThatIsBlamedIsAnError(t *testing.T) {
	good := row{Found: true, Verdict: "LEAK", TwinRuns: 3}
	bad := row{TwinRuns: 3, Wrong: []string{"missed in 3 runs"}}
	var out strings.Builder
	if err := newTable(&out).footer([]row{good}); err != nil {
		t.Error(err)
	}
	if newTable(&out).footer([]row{good, bad}) == nil || newTable(&out).footer(nil) == nil {
		t.Error("it was accepted")
	}
	out.Reset()
	other := row{Verdict: "HOT LOOP", TwinRuns: 3, Wrong: []string{"HOT LOOP is not one of LEAK"}}
	if newTable(&out).footer([]row{good, other}) == nil || !strings.Contains(out.String(), "1 of 2 bugs were found") {
		t.Errorf("another bug's verdict counts as found: %q", out.String())
	}
}

func TestACorrectControllerCountsAsCleanAndNotAsABug(t *testing.T) {
	var out strings.Builder
	rows := []row{{Found: true, Verdict: "LEAK", TwinRuns: 3}, {Clean: true, TwinRuns: 4}}
	if err := newTable(&out).footer(rows); err != nil {
		t.Error(err)
	}
	if want := "1 of 1 bugs were found; 2 of 2 correct controllers had no findings in 7 runs"; !strings.Contains(out.String(), want) {
		t.Errorf("the footer is %q, want %q", out.String(), want)
	}
}

func TestRowsFitInEightyColumns(t *testing.T) {
	var out strings.Builder
	table := newTable(&out)
	table.header(1)
	table.row(row{Class: "A1", Name: strings.Repeat("n", 22), Verdict: "DIVERGED UNTIL RESTART", Runs: 999, Seconds: 999.9, Reproduced: 3, Attempts: 3, TwinRuns: 9999})
	for line := range strings.Lines(out.String()) {
		if len([]rune(strings.TrimSpace(line))) > 80 {
			t.Errorf("too long: %q", line)
		}
	}
}

func TestARunThatIsResumedRepeatsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	results, err := newResults(file, true)
	if err != nil {
		t.Fatal("a first run cannot be resumed:", err)
	}
	for _, r := range []row{{Bug: "b1", Seed: 2}, {Bug: "a1", Seed: 2}, {Bug: "b1", Seed: 1, Wrong: []string{"missed"}}, {Bug: "a1", Seed: 1}} {
		if err := results.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if results, err = newResults(file, true); err != nil {
		t.Fatal(err)
	}

	o := options{koboshi: "no-such-program", seeds: []uint64{1, 2}, jobs: 3}
	var got []string
	for r, err := range o.rows(t.Context(), []*bug{{ID: "a1"}, {ID: "b1"}}, results) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(r.Seed, r.Bug, r.Wrong))
	}
	if want := []string{"1a1[]", "1b1[missed]", "2a1[]", "2b1[]"}; !slices.Equal(got, want) {
		t.Errorf("the rows are %v, want %v", got, want)
	}
	if again, err := newResults(file, false); err != nil || len(again.rows) != 0 {
		t.Errorf("without -resume, %v is kept (%v)", again.rows, err)
	}
}

func TestARunEndsIfItsResultsCannotBeWritten(t *testing.T) {
	o := options{koboshi: "no-such-program", bugs: "no-such-program", seeds: []uint64{1, 2, 3}, jobs: 2}
	results := &results{file: filepath.Join(t.TempDir(), "no-such-folder", "results.json")}
	var failed error
	for r, err := range o.rows(t.Context(), []*bug{{ID: "a1", dir: t.TempDir()}}, results) {
		if err == nil {
			t.Errorf("%v was not written, but is returned", r)
		}
		failed = err
	}
	if !errors.Is(failed, fs.ErrNotExist) {
		t.Errorf("the error is %v", failed)
	}
}

func TestDamagedResultsAreNotOverwritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	if err := os.WriteFile(file, []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newResults(file, true); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("the error is %v, want one that names %s", err, file)
	}
}

func TestWrongOutputsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-o", "results.json"}, {"-o", "json="}, {"-resume"}} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), "json=FILE") {
			t.Errorf("%q: the error is %v, want one that says json=FILE", args, err)
		}
	}
	if o, err := parse([]string{"-o", "json=a.json", "-resume"}); err != nil || o.file != "a.json" || !o.resume {
		t.Errorf("the options are %+v (%v)", o, err)
	}
}

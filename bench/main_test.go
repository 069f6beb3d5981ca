package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/bench/internal/measure"
	"github.com/koboshi-dev/koboshi/bench/internal/result"
)

func TestTheChartIsWrittenBesideItsFigures(t *testing.T) {
	figures, err := os.ReadFile("testdata/invented.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bench.json")
	if err := os.WriteFile(path, figures, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-chart", path}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(strings.TrimSuffix(path, ".json") + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/invented.svg")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

// A published chart must match the figures next to it. Figures without a
// chart, such as those for an operator, do not come from this program.
func TestThePublishedChartIsThatOfThePublishedFigures(t *testing.T) {
	published, err := filepath.Glob("../docs/bench/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	if len(published) == 0 {
		t.Fatal("no chart is published in docs/bench")
	}
	for _, want := range published {
		figures := strings.TrimSuffix(want, ".svg") + ".json"
		twin := filepath.Join(t.TempDir(), filepath.Base(figures))
		if err := os.WriteFile(twin, []byte(text(t, figures)), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := draw(twin); err != nil {
			t.Fatal(err)
		}
		got := strings.TrimSuffix(twin, ".json") + ".svg"
		if diff := cmp.Diff(text(t, want), text(t, got)); diff != "" {
			t.Errorf("%s is not the chart of %s; to draw it, run go run . -chart %s:\n%s", want, figures, figures, diff)
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWrongFlagsAreRefusedBeforeAnythingIsBuilt(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-rounds", "0"}, "at least 1"},
		{[]string{"-only", "start,speed"}, `no measure is named "speed"`},
		{[]string{"start"}, `unknown argument "start"`},
		{[]string{"-stock", t.TempDir(), "-koboshi", t.TempDir()}, "-stock DIR"},
	} {
		if err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestARoundsOutcomeIsAValueOrAFailurePerContestant(t *testing.T) {
	m := measure.Measure{Figures: []measure.Figure{{Name: "a"}, {Name: "b"}}}
	r := result.Report{Contestants: []string{"stock", "koboshi"}}
	add(&r, m, map[string]outcome{
		"stock":   {values: measure.Values{"a": 1, "b": 2}},
		"koboshi": {values: measure.Values{"a": 3}},
	})
	add(&r, m, map[string]outcome{
		"stock":   {values: measure.Values{"a": 4, "b": 5}},
		"koboshi": {values: measure.Values{"a": 6}, err: os.ErrDeadlineExceeded},
	})
	want := []result.Figure{
		{Name: "a", Rounds: []map[string]float64{{"stock": 1, "koboshi": 3}, {"stock": 4}}, Failed: map[string]int{"koboshi": 1}},
		{Name: "b", Rounds: []map[string]float64{{"stock": 2}, {"stock": 5}}, Failed: map[string]int{"koboshi": 2}},
	}
	if diff := cmp.Diff(want, r.Figures); diff != "" {
		t.Error(diff)
	}
	if err := missing(r); err == nil || strings.Contains(err.Error(), "stock") {
		t.Errorf("a run without any figure b of koboshi says %v", err)
	}
}

package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// backAndForth returns a check that has learnt that the state after step undo differs from the
// state after step create. Another scenario begins with the same step.
func backAndForth(horizon time.Duration) *check {
	apply := func(name, colour string) scenario.Step {
		return scenario.Step{Name: name, Apply: []scenario.Manifest{{File: colour}}}
	}
	undo := apply("undo", "red")
	undo.SameAs = "create"
	back := &scenario.Scenario{Name: "back", Steps: []scenario.Step{apply("create", "red"), apply("change", "blue"), undo}}
	life := &scenario.Scenario{Name: "life", Steps: []scenario.Step{apply("make", "red")}}
	c := newCheck(Options{Horizon: horizon, Scenarios: []*scenario.Scenario{back, life}})
	for _, sc := range c.Scenarios {
		l := &fleet.Lesson{Lesson: &lab.Lesson{Scenario: sc, Reference: &judge.Reference{}}}
		if sc == back {
			l.Findings = []judge.Finding{{Verdict: judge.PathDependent, Scenario: "back", Step: "undo", Sentence: "after step undo …"}}
		}
		c.learnt(l)
	}
	return c
}

func TestRestsThatAFindingComparesAreWatchedFirst(t *testing.T) {
	c := backAndForth(time.Second)
	rests, needed := inFront(restsOf(c.comparable()), c.keys(), c.comparedRests())
	if needed != 2 || !slices.ContainsFunc(rests[:2], func(r Rest) bool { return r.Step == "undo" }) || rests[2].Step != "change" {
		t.Errorf("the first %d of %v are watched in any case", needed, rests)
	}
}

func TestAComparisonOfRestsThatWereNotWatchedIsNoFinding(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		horizon time.Duration
		watched map[Rest]time.Duration
		want    int
	}{
		"both":                {s, map[Rest]time.Duration{{"back", "create"}: s, {"back", "undo"}: s}, 1},
		"in another scenario": {s, map[Rest]time.Duration{{"life", "make"}: s, {"back", "undo"}: s}, 1},
		"only one":            {s, map[Rest]time.Duration{{"back", "undo"}: s}, 0},
		"neither":             {s, nil, 0},
		"not wanted":          {0, nil, 1},
	} {
		c := backAndForth(test.horizon)
		for rest, horizon := range test.watched {
			c.result.Watched[rest] = horizon
		}
		r := c.report(nil).Report
		if len(r.Findings) != test.want {
			t.Errorf("if the rests are watched (%s), there are %d findings, want %d", name, len(r.Findings), test.want)
		}
		if noted := strings.Contains(strings.Join(r.Notes, "\n"), "after step undo"); noted == (test.want == 1) {
			t.Errorf("if the rests are watched (%s), the notes are %q", name, r.Notes)
		}
	}
}

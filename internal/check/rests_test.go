package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// applies returns a step that applies an object with a value in its spec.
func applies(name, value string) scenario.Step {
	return scenario.Step{Name: name, Apply: []scenario.Manifest{{Object: map[string]any{"kind": "Widget", "spec": value}}}}
}

var deletes = scenario.Step{Name: "delete", Delete: &scenario.Delete{ObjectRef: scenario.ObjectRef{Kind: "Widget", Name: "w"}}}

func three() []*scenario.Scenario {
	return []*scenario.Scenario{
		{Name: "life", Steps: []scenario.Step{applies("create", "a"), deletes}},
		{Name: "change", Steps: []scenario.Step{applies("make", "a"), applies("change", "b"), deletes}},
		{Name: "other", Steps: []scenario.Step{applies("create", "c"), applies("change", "b"), deletes}},
	}
}

func TestRestThatTheSameStepsLeadToIsWatchedOnce(t *testing.T) {
	want := []Rest{{"life", "create"}, {"other", "create"}, {"life", "delete"}, {"change", "change"}, {"other", "change"}}
	if got := restsOf(three()); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRestInAnotherGivenWorldIsWatched(t *testing.T) {
	scenarios := three()[:1]
	again := *scenarios[0]
	again.Name, again.Given = "given", []scenario.Manifest{{File: "given.yaml"}}
	if got := restsOf(append(scenarios, &again)); len(got) != 4 {
		t.Errorf("%v", got)
	}
}

func TestBudgetShortensTheHorizonBeforeItLeavesOutRests(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		budget      time.Duration
		rests, labs int
		each        time.Duration
		n           int
	}{
		{0, 30, 2, 15 * s, 30},         // no budget
		{time.Hour, 30, 6, 15 * s, 30}, // more than enough
		{time.Minute, 4, 4, 13 * s, 4},
		{time.Minute, 6, 2, 3 * s, 6},
		{time.Minute, 30, 2, 3 * s, 6},
		{10 * s, 30, 2, 3 * s, 0},
	} {
		each, n := withinBudget(15*s, test.budget, test.rests, test.labs)
		if each != test.each || n != test.n {
			t.Errorf("with a budget of %s, %d of %d rests are watched for %s, want %d for %s", test.budget, n, test.rests, each, test.n, test.each)
		}
	}
}

func TestWatchingTakesAShareOfTheTimeForFaults(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		faults      time.Duration
		rests, labs int
		want        int
	}{
		{0, 30, 2, 4}, {100 * s, 30, 6, 12}, {300 * s, 30, 5, 20}, {time.Hour, 30, 5, 30}, {time.Second, 3, 2, 3},
	} {
		if got := withinEstimate(15*s, test.faults, test.rests, test.labs); got != test.want {
			t.Errorf("if the faults take %s, %d of %d rests are watched in %d labs, want %d", test.faults, got, test.rests, test.labs, test.want)
		}
	}
}

func TestPlateauOfOneScenarioCountsForAllScenariosWithTheSameSteps(t *testing.T) {
	seen := map[string][]*lab.Watched{"life": {{Step: "create", Quiet: 5 * time.Second}, {Step: "delete"}}}
	again := amended(three(), seen)
	if len(again) != 2 || again[0].Name != "life" || again[1].Name != "change" {
		t.Fatalf("%d scenarios are learnt again", len(again))
	}
	for _, sc := range again {
		if got := time.Duration(sc.Steps[0].Quiet); got != 5*time.Second {
			t.Errorf("scenario %s: the quiet time of the first step is %s", sc.Name, got)
		}
		if got := sc.Steps[1].Quiet; got != 0 {
			t.Errorf("scenario %s: the quiet time of the second step is %s", sc.Name, time.Duration(got))
		}
	}
}

func TestRegularWritesAreIgnoredInAllScenarios(t *testing.T) {
	const line = "Widget status.lastProbeTime"
	scenarios := three()
	scenarios[1].Ignore = []string{line}
	again := amended(scenarios, map[string][]*lab.Watched{"other": {{Step: "change", Ignore: []string{line}}, {Step: "create", Ignore: []string{line}}}})
	if len(again) != 2 {
		t.Fatalf("%d scenarios are learnt again, want the two that do not ignore the field yet", len(again))
	}
	for _, sc := range again {
		if !slices.Equal(sc.Ignore, []string{line}) {
			t.Errorf("scenario %s ignores %v", sc.Name, sc.Ignore)
		}
	}
	if three()[0].Ignore != nil || scenarios[0].Ignore != nil {
		t.Error("the original scenario was changed")
	}
}

func TestQuietWorldNeedsNoSecondLesson(t *testing.T) {
	if again := amended(three(), map[string][]*lab.Watched{"life": {{Step: "create"}}}); len(again) > 0 {
		t.Errorf("%d scenarios are learnt again", len(again))
	}
}

func TestOnlyTheFirstKillOfAClassHasATail(t *testing.T) {
	kill := func(kind fault.Kind, step, verb string) plan.Planned {
		return plan.Planned{Scenario: "life", Fault: fault.Fault{Kind: kind, Point: fault.Point{Step: step, Verb: verb, Resource: "configmaps"}}}
	}
	queue := []plan.Planned{
		kill(fault.Conflict, "create", "create"), kill(fault.KillLost, "create", "create"), kill(fault.KillAfter, "create", "create"),
		kill(fault.KillAfter, "create", "update"), kill(fault.KillAfter, "change", "create"),
	}
	if got, want := tailsOf(queue), []bool{false, true, false, true, true}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRemarksTellWhatWasSeenAtRest(t *testing.T) {
	for want, w := range map[string]*lab.Watched{
		"the rest was not watched: it differs":                          {Failed: "it differs"},
		"W w changed again after the controller seemed to be at rest":   {Horizon: 1, Quiet: time.Second, What: "W w"},
		"W w still changed when Koboshi stopped watching":               {Horizon: 1, Endless: true, What: "W w"},
		"at rest, the controller or another client writes status.lastX": {Horizon: 1, Beats: []string{"status.lastX of W w, every 2s"}},
	} {
		if got := remarks(w); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
	if got := remarks(&lab.Watched{Horizon: 1}); len(got) > 0 {
		t.Errorf("a quiet rest has remarks: %v", got)
	}
}

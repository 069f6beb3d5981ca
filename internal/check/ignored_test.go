package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func TestAnIgnoreThatNeverMatchesIsNoted(t *testing.T) {
	// The settings have already been applied to the scenarios.
	one := &scenario.Scenario{Name: "one", Ignore: []string{"A own", "B shared", "C used", "D late"}}
	two := &scenario.Scenario{Name: "two", Ignore: []string{"B shared", "C used", "D late"}}
	lesson := func(s *scenario.Scenario, matched ...string) *fleet.Lesson {
		return &fleet.Lesson{Lesson: &lab.Lesson{Scenario: s, Reference: &judge.Reference{}, Matched: matched}}
	}
	options := Options{
		Scenarios: []*scenario.Scenario{one, two}, OpinionsFile: "koboshi.yaml",
		Opinions: opinions.Opinions{Ignore: []string{"B shared", "C used", "D late"}},
	}
	o := newOutcome(options)
	o.learnt(lesson(one))
	o.learnt(lesson(two, "C used"))
	o.matched("one", []string{"D late"}) // in a run with a fault
	notes := o.idleIgnores()
	if len(notes) != 2 || !strings.HasPrefix(notes[0], `scenario one: ignore: "A own" matched no field`) ||
		!strings.HasPrefix(notes[1], `koboshi.yaml: check.ignore: "B shared" matched no field`) {
		t.Errorf("notes %q", notes)
	}
	o.lessons["two"].Reference = nil // its runs could not be compared
	if notes := o.idleIgnores(); len(notes) != 1 {
		t.Errorf("with a scenario that could not be compared: %q", notes)
	}
	o.Shards = 2
	if notes := o.idleIgnores(); len(notes) != 0 {
		t.Errorf("in a shard: %q", notes)
	}
}

func TestFaultsThatTheProjectDoesNotWantAreNotRun(t *testing.T) {
	child := fault.Fault{Kind: fault.DeleteChild, Point: fault.Point{Step: "create"}, Target: "Job.batch/default/a"}
	other := at(fault.KillLost, "a")
	o := &Options{
		Opinions: opinions.Opinions{Interference: opinions.Interference{Skip: []string{"Job.*"}}},
		First:    map[string][]fault.Fault{"life": {child}}, // a finding of the previous check
	}
	plans := []plan.Plan{{Faults: []plan.Planned{{Scenario: "life", Fault: child}, other}}}
	queue, _, _ := queueOf(o, plans, func(string) bool { return true }, func([]plan.Planned) bool { return true })
	if kinds := kindsIn(queue); !slices.Equal(kinds, []fault.Kind{fault.KillLost}) {
		t.Errorf("it runs %v", kinds)
	}
	o.Opinions = opinions.Opinions{}
	queue, _, _ = queueOf(o, plans, func(string) bool { return true }, func([]plan.Planned) bool { return true })
	if kinds := kindsIn(queue); len(kinds) != 2 || kinds[0] != fault.DeleteChild {
		t.Errorf("without settings, it runs %v", kinds)
	}
}

func kindsIn(queue []plan.Planned) (kinds []fault.Kind) {
	for _, p := range queue {
		kinds = append(kinds, p.Fault.Kind)
	}
	return kinds
}

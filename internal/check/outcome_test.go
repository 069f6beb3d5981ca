package check

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/journal"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// at returns a fault at the creation of an object.
func at(kind fault.Kind, object string) plan.Planned {
	f := fault.Fault{Kind: kind, Point: fault.Point{Step: "create", Verb: "create", Resource: "configmaps", Object: object}}
	return plan.Planned{ID: string(kind) + object, Scenario: "life", Fault: f, Phase: 1}
}

// diverged returns a finding that the object differs from the reference.
func diverged(object string) judge.Finding {
	return judge.Finding{ID: object, Verdict: judge.Diverged, Scenario: "life", Step: "create", Differences: []state.Difference{{Object: object}}}
}

func TestEachRunHasOneOutcome(t *testing.T) {
	c := newTally(&report.Report{})
	p := at(fault.KillLost, "a")
	for _, out := range []fleet.Outcome{
		{Took: time.Second},
		{Findings: []judge.Finding{diverged("a")}},
		{NotApplied: "no such request"},
		{Inconclusive: "it did not come to rest", NotApplied: "nor was it applied"},
		{Pruned: true},
	} {
		c.planned(p)
		c.ran(p, &out)
	}
	c.confirmed()
	c.learnt(3)
	want := []report.Tried{{
		Scenario: "life", Kind: fault.KillLost, Planned: 5, Runs: 5, Clean: 2, Found: 1, NotApplied: 1, Inconclusive: 1, Pruned: 1, Seconds: 1,
	}}
	if diff := cmp.Diff(want, c.all()); diff != "" {
		t.Error(diff)
	}
	if r := c.report; r.Runs != 9 || r.References != 3 || r.Confirmations != 1 || len(r.NotApplied) != 1 || len(r.Inconclusive) != 1 {
		t.Errorf("the report has %+v", r)
	}
}

func TestRunWithoutConfirmedFindingsIsInconclusive(t *testing.T) {
	c := newTally(&report.Report{})
	p := at(fault.KillLost, "a")
	c.ran(p, &fleet.Outcome{Findings: []judge.Finding{diverged("a"), diverged("b")}})
	c.doubtful(p, judge.Finding{}, "a did not show again")
	if k := c.all()[0]; k.Found != 1 || k.Inconclusive != 0 {
		t.Errorf("with one of two findings left, the count is %+v", k)
	}
	c.doubtful(p, judge.Finding{}, "nor did b")
	if k := c.all()[0]; k.Found != 0 || k.Inconclusive != 1 {
		t.Errorf("with no finding left, the count is %+v", k)
	}
}

func TestKindsAreCountedInTheirOrderAndByScenario(t *testing.T) {
	c := newTally(&report.Report{})
	other := at(fault.KillBefore, "a")
	other.Scenario = "again"
	for _, p := range []plan.Planned{at(fault.Restart, "a"), at(fault.KillBefore, "a"), other} {
		c.planned(p)
	}
	var got []string
	for _, k := range c.all() {
		got = append(got, k.Scenario+" "+string(k.Kind))
	}
	if diff := cmp.Diff([]string{"again kill-before", "life kill-before", "life restart"}, got); diff != "" {
		t.Error(diff)
	}
}

// checkOf returns a check that has learnt the scenario "life", and a plan with the faults.
func checkOf(o Options, faults ...plan.Planned) (*check, []plan.Plan) {
	c := newCheck(o)
	c.lessons["life"] = &fleet.Lesson{Lesson: &lab.Lesson{Reference: &judge.Reference{}}}
	return c, []plan.Plan{{Faults: faults}}
}

func names(queue []plan.Planned) (all []string) {
	for _, p := range queue {
		all = append(all, string(p.Fault.Kind)+" "+p.Fault.Point.Object)
	}
	return all
}

func TestFaultsWithEarlierFindingsRunFirstAndOnce(t *testing.T) {
	last := at(fault.Conflict, "z")
	last.Rank = 9
	before := last.Fault
	before.Behind = 3 // for human readers only
	gone := at(fault.KillLost, "gone").Fault
	c, plans := checkOf(Options{First: map[string][]fault.Fault{"life": {before, gone}, "unknown": {before}}}, at(fault.KillLost, "a"), last)
	if diff := cmp.Diff([]string{"conflict z", "kill-lost gone", "kill-lost a"}, names(c.order(plans))); diff != "" {
		t.Error(diff)
	}
}

func TestReplayRunsNoOtherFault(t *testing.T) {
	p := at(fault.KillLost, "b")
	c, plans := checkOf(Options{Only: true, First: map[string][]fault.Fault{"life": {p.Fault}}}, at(fault.KillLost, "a"), p)
	if diff := cmp.Diff([]string{"kill-lost b"}, names(c.order(plans))); diff != "" {
		t.Error(diff)
	}
}

func TestOnlySelectedKindsAreRun(t *testing.T) {
	c, plans := checkOf(Options{Faults: []fault.Kind{fault.Conflict}}, at(fault.KillLost, "a"), at(fault.Conflict, "a"))
	if diff := cmp.Diff([]string{"conflict a"}, names(c.order(plans))); diff != "" {
		t.Error(diff)
	}
}

func TestNoFaultIsRunAfterAFindingWhenOneIsEnough(t *testing.T) {
	c, plans := checkOf(Options{StopAtFirst: true}, at(fault.KillLost, "a"))
	c.result.Report.Findings = []judge.Finding{diverged("a")}
	if queue := c.order(plans); len(queue) != 0 {
		t.Errorf("it would run %v", names(queue))
	}
}

func TestShardsTogetherAreTheWholePlanWithoutOverlap(t *testing.T) {
	var faults []plan.Planned
	for _, kind := range fault.Kinds() {
		faults = append(faults, at(kind, "a"), at(kind, "b"))
	}
	var together []string
	for i := 1; i <= 3; i++ {
		c, plans := checkOf(Options{Shard: i, Shards: 3}, faults...)
		part := names(c.order(plans))
		if left := c.result.Report.LeftToShards; left+len(part) != len(faults) {
			t.Errorf("shard %d has %d faults and leaves %d, of %d", i, len(part), left, len(faults))
		}
		together = append(together, part...)
	}
	all := names(faults)
	slices.Sort(all)
	slices.Sort(together)
	if diff := cmp.Diff(all, together); diff != "" {
		t.Error(diff)
	}
}

func TestPermissionIsUnusedIfNoRunNeedsIt(t *testing.T) {
	c := newCheck(Options{})
	verbs := func(verbs ...string) (unused []judge.Unused) {
		for _, verb := range verbs {
			unused = append(unused, judge.Unused{Role: "manager", Permission: judge.Permission{Verb: verb, Resource: "pods"}})
		}
		return unused
	}
	c.lessons["one"] = &fleet.Lesson{Lesson: &lab.Lesson{Unused: verbs("create", "delete", "get", "watch")}}
	c.lessons["two"] = &fleet.Lesson{Lesson: &lab.Lesson{Unused: verbs("delete", "get", "patch", "watch")}}
	c.needed(verbs("get"))
	if diff := cmp.Diff(verbs("delete", "watch"), c.unused()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAControllerMakesInAnotherScenarioIsNotNoted(t *testing.T) {
	o := newOutcome(Options{})
	for name, l := range map[string]*lab.Lesson{"life": {Missing: []string{"the target", "the database"}}, "again": {Own: []string{"the target"}}} {
		l.Scenario = &scenario.Scenario{Name: name}
		o.describe(&fleet.Lesson{Lesson: l})
	}
	if notes := o.report(nil).Report.Notes; !slices.Equal(notes, []string{"the database"}) {
		t.Errorf("the notes are %q", notes)
	}
}

func TestResumedRunWithOnlyARemarkIsClean(t *testing.T) {
	p := at(fault.DeleteChild, "a")
	r := recordOf(p, &fleet.Outcome{Findings: []judge.Finding{{Verdict: judge.NotRestored}}})
	c := &check{outcome: newOutcome(Options{Known: &journal.Known{Ran: []journal.Ran{r}}}), suspicions: &suspicions{}}
	c.suspicions.outcome = c.outcome
	c.resume([]plan.Planned{p})
	if got := c.tally.all(); len(got) != 1 || got[0].Clean != 1 || got[0].Found != 0 {
		t.Errorf("%+v", got)
	}
}

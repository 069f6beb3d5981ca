package check

import (
	"fmt"
	"slices"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/upgrade"
)

func killAtWrite(verb, resource string) fault.Fault {
	return fault.Fault{Kind: fault.KillLost, Point: fault.Point{Step: upgrade.Up, Verb: verb, Resource: resource, Object: "default/a", Occurrence: 1}}
}

// upgradeOf returns the upgrade of the named scenarios, in which the new version can be killed at the writes.
func upgradeOf(o Options, kills ...fault.Fault) (*upgrading, []*fleet.Lesson) {
	u := &upgrading{check: newCheck(o), kills: map[string][]fault.Fault{}}
	var lessons []*fleet.Lesson
	for _, name := range []string{"a", "b"} {
		lessons = append(lessons, &fleet.Lesson{Lesson: &lab.Lesson{
			Scenario: &scenario.Scenario{Name: name}, Reference: &judge.Reference{Steps: []judge.StepReference{{}}},
		}})
		u.kills[name] = kills
	}
	return u, lessons
}

func planned(kills []upgradeKill) (all []string) {
	for _, k := range kills {
		all = append(all, fmt.Sprintf("%s %s %s", k.lesson.Scenario.Name, k.fault.Point.Verb, k.fault.Point.Resource))
	}
	return all
}

func TestKillsDuringAnUpgradeBeginWithCreationsAndAlternate(t *testing.T) {
	u, lessons := upgradeOf(Options{}, killAtWrite("update", "widgets.example.com/status"), killAtWrite("update", "services"), killAtWrite("create", "secrets"))
	want := []string{
		"a create secrets", "b create secrets", "a update services", "b update services",
		"a update widgets.example.com/status", "b update widgets.example.com/status",
	}
	if got := planned(u.planKills(lessons)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestTheNumberOfKillsDuringAnUpgradeIsLimited(t *testing.T) {
	var many []fault.Fault
	for i := range 3 * mostKills {
		many = append(many, killAtWrite("create", fmt.Sprintf("kinds%d", i)))
	}
	u, lessons := upgradeOf(Options{}, many...)
	if got := u.planKills(lessons); len(got) != 2*mostKills || !fault.Same(got[0].fault, many[0]) {
		t.Errorf("%d kills, the first at %v", len(got), got[0].fault)
	}
}

func TestTheKillsThatWereLeftOutAreCounted(t *testing.T) {
	var many []fault.Fault
	for i := range mostKills + 3 {
		many = append(many, killAtWrite("create", fmt.Sprintf("kinds%d", i)))
	}
	u, lessons := upgradeOf(Options{}, many...)
	if notes := u.leftOutKills(); len(notes) > 0 {
		t.Errorf("%q", notes)
	}
	for _, k := range u.planKills(lessons) {
		u.noTimeFor(k)
	}
	want := []string{
		"16 kills of the new version did not fit into the budget; increase --budget, or omit it",
		"the new version was not killed at 6 further writes, because a check kills it at most 8 times in each scenario, and 40 times in all",
	}
	if got := u.leftOutKills(); !slices.Equal(got, want) || len(u.result.Report.NotApplied) > 0 {
		t.Errorf("%q, %v", got, u.result.Report.NotApplied)
	}
}

func TestAReplayWithoutItsKillHasNoResult(t *testing.T) {
	saved := killAtWrite("update", "services")
	o := Options{Only: true, First: map[string][]fault.Fault{"a": {saved}}}
	for name, skip := range map[string]func(*upgrading, []*fleet.Lesson){
		"no time":      func(u *upgrading, lessons []*fleet.Lesson) { u.noTimeFor(u.planKills(lessons)[0]) },
		"no reference": func(u *upgrading, lessons []*fleet.Lesson) { lessons[0].Reference.Steps = nil; u.planKills(lessons) },
		"not sent":     func(u *upgrading, lessons []*fleet.Lesson) { u.notKilled(u.planKills(lessons)[0], "it was not sent") },
	} {
		u, lessons := upgradeOf(o)
		skip(u, lessons)
		if not := u.result.Report.NotApplied; len(not) != 1 || not[0].Why == "" || !fault.Same(not[0].Fault, saved) {
			t.Errorf("%s: %+v", name, not)
		}
	}
}

func TestWhatAnUpgradeShowsWithoutItsKillIsNotItsFault(t *testing.T) {
	found := upgrade.Result{Findings: []judge.Finding{{ID: "1"}}}
	if done, why := ofKill(&lab.Upgraded{Result: found, Inconclusive: "it was not sent"}); done != nil || why != "it was not sent" {
		t.Errorf("%+v, %s", done, why)
	}
	if done, why := ofKill(&lab.Upgraded{Result: found, Inconclusive: "no rest", Killed: true}); done == nil || len(done.Findings) != 1 || why != "" {
		t.Errorf("%+v, %s", done, why)
	}
}

func TestAReplayOfAnUpgradeKillsOnlyWhereTheFindingDoes(t *testing.T) {
	saved := killAtWrite("update", "services")
	u, lessons := upgradeOf(Options{Only: true, First: map[string][]fault.Fault{"b": {saved}}}, killAtWrite("create", "secrets"), saved)
	if got := planned(u.planKills(lessons)); !slices.Equal(got, []string{"b update services"}) {
		t.Errorf("%q", got)
	}
	u, lessons = upgradeOf(Options{First: map[string][]fault.Fault{"b": {saved}}}, killAtWrite("create", "secrets"), saved)
	if got := planned(u.planKills(lessons)); !slices.Equal(got, []string{"a create secrets", "b update services", "a update services", "b create secrets"}) {
		t.Errorf("a saved finding is not first, or is there twice: %q", got)
	}
}

func TestWithoutAReferenceNothingIsKilledDuringAnUpgrade(t *testing.T) {
	u, lessons := upgradeOf(Options{}, killAtWrite("create", "secrets"))
	for _, l := range lessons {
		l.Reference.Steps = nil
	}
	if got := u.planKills(lessons); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

func TestAFindingAfterAKillNamesTheKillAndIsAnother(t *testing.T) {
	f := judge.Finding{ID: "1", Verdict: judge.NotAsFresh, Scenario: "a", Step: upgrade.Up, Sentence: "after the upgrade, Secret default/b is missing"}
	killed := judge.Killed(f, killAtWrite("create", "secrets"))
	if killed.ID == f.ID || killed.Fault == nil || killed.Sentence == f.Sentence || killed.ID == judge.Killed(f, killAtWrite("create", "services")).ID {
		t.Errorf("%+v", killed)
	}
}

package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/cost"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// measured returns the outcome of a check whose scenarios needed the given requests.
func measured(o Options, usages map[string]cost.Usage) *outcome {
	out := newOutcome(o)
	for _, sc := range o.Scenarios {
		if u, learnt := usages[sc.Name]; learnt {
			out.learnt(&fleet.Lesson{Lesson: &lab.Lesson{Scenario: sc, Reference: &judge.Reference{}, Runs: 3, Usage: u}})
		}
	}
	return out
}

func gets(n int) cost.Usage {
	return cost.Usage{Requests: []cost.Requests{{Name: "get pods", Least: n, Most: n + 1}}, Steps: 2}
}

func storiesOf(names ...string) (all []*scenario.Scenario) {
	for _, name := range names {
		all = append(all, &scenario.Scenario{Name: name, Seeded: strings.HasSuffix(name, "-change")})
	}
	return all
}

var someBudget = opinions.Opinions{Requests: opinions.Requests{Budget: map[string]map[string]int32{"a": {"get pods": 10}, "b": {"get pods": 10}, "c-change": {"get pods": 1}, "gone": {"get pods": 1}}}}

func TestOnlyScenariosAboveTheirBudgetGetARemark(t *testing.T) {
	usages := map[string]cost.Usage{"a": gets(40), "b": gets(12), "c-change": gets(90), "new": gets(90)}
	for _, strict := range []bool{false, true} {
		out := measured(Options{Scenarios: storiesOf("a", "b", "c-change", "new"), Opinions: someBudget, Strict: strict, Seed: 7}, usages)
		r := out.report(nil).Report
		all := slices.Concat(r.Findings, r.Remarks)
		if len(all) != 1 || all[0].Verdict != judge.MoreRequests || all[0].Scenario != "a" || all[0].Attempts != 3 || all[0].Reproduced != 3 || all[0].Seed != 7 {
			t.Fatalf("%+v", all)
		}
		if want := 0; !strict && r.ExitCode() != want || strict && r.ExitCode() != 1 {
			t.Errorf("with strict %v the exit code is %d", strict, r.ExitCode())
		}
		if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "1 scenario not in the budget of requests (new); koboshi check --update-budget adds them") {
			t.Errorf("notes:\n%s", notes)
		}
	}
}

func TestWithoutABudgetOrInAReplayNothingIsCompared(t *testing.T) {
	usages := map[string]cost.Usage{"a": {Requests: gets(40).Requests, Lists: []cost.Lists{{Resource: "pods", Times: 9, Steps: 2}}, Steps: 2}}
	for name, o := range map[string]Options{
		"no budget":          {Opinions: opinions.Opinions{Requests: opinions.Requests{Lists: []string{"pods"}}}},
		"a replay":           {Opinions: someBudget, Only: true},
		"an upgrade":         {Opinions: someBudget, Upgrade: &Upgrade{}},
		"the wrong profile":  {Opinions: someBudget, ProfileChosen: true, Profile: "gc"},
		"a budget that fits": {Opinions: opinions.Opinions{Requests: opinions.Requests{Budget: map[string]map[string]int32{"a": {"get pods": 40}}, Lists: []string{"pods"}}}},
	} {
		o.Scenarios = storiesOf("a")
		out := measured(o, usages)
		out.lessons["a"].Workloads = name == "the wrong profile"
		if r := out.report(nil).Report; len(r.Remarks)+len(r.Findings) > 0 || strings.Contains(strings.Join(r.Notes, ""), "budget of requests") {
			t.Errorf("%s: %+v, notes %q", name, r.Remarks, r.Notes)
		}
	}
}

func TestAResourceThatScenariosListIsOneRemarkThatTheProjectCanAccept(t *testing.T) {
	u := cost.Usage{Lists: []cost.Lists{{Resource: "pods", Namespace: "default", Times: 9, Steps: 2}}, Steps: 2}
	o := Options{Scenarios: storiesOf("a", "b-change")}
	r := measured(o, map[string]cost.Usage{"a": u, "b-change": u}).report(nil).Report
	if len(r.Remarks) != 1 || r.Remarks[0].Verdict != judge.UnboundedLists || len(r.Remarks[0].AlsoIn) != 1 || r.ExitCode() != 0 {
		t.Fatalf("%+v", r.Remarks)
	}
	if s := r.Remarks[0].Silence; s == nil || s.Add != "check:\n  requests:\n    lists:\n    - pods\n" {
		t.Errorf("to accept it, add %+v", s)
	}
	o.Opinions.Requests.Lists = []string{"pods"}
	if r := measured(o, map[string]cost.Usage{"a": u, "b-change": u}).report(nil).Report; len(r.Remarks) > 0 {
		t.Errorf("accepted, but there is %+v", r.Remarks)
	}
}

func TestANewBudgetHasAllScenariosThatDoNotDependOnTheSeed(t *testing.T) {
	o := Options{Scenarios: storiesOf("a", "b", "c-change"), Opinions: someBudget, UpdateBudget: true}
	result := measured(o, map[string]cost.Usage{"a": gets(40), "b": {}, "c-change": gets(5)}).report(nil)
	if diff := cmp.Diff(map[string]map[string]int32{"a": {"get pods": 41}, "b": {}}, result.Budget); diff != "" || result.NoBudget != "" {
		t.Errorf("%s%s", diff, result.NoBudget)
	}
	if len(result.Report.Remarks) > 0 {
		t.Errorf("the old budget still counts: %+v", result.Report.Remarks)
	}
	if none := measured(Options{Scenarios: storiesOf("a")}, map[string]cost.Usage{"a": gets(40)}).report(nil); none.Budget != nil {
		t.Errorf("without being asked, it measured %v", none.Budget)
	}
}

func TestABudgetWithoutAllScenariosIsNotComplete(t *testing.T) {
	usages := map[string]cost.Usage{"a": gets(40), "b": gets(1)}
	for want, spoil := range map[string]func(*outcome){
		"scenario b could not be run without a fault (no sample)": func(o *outcome) {
			delete(o.lessons, "b")
			o.notLearnt(&scenario.Scenario{Name: "b"}, "no sample")
		},
		"the check was interrupted after 3 of 10 faults": func(o *outcome) { o.result.Report.Stopped = "interrupted after 3 of 10 faults" },
		"scenario b has no result without a fault": func(o *outcome) {
			o.lessons["b"] = &fleet.Lesson{Lesson: &lab.Lesson{Scenario: o.lessons["b"].Scenario}}
		},
		"it never became the leader": func(o *outcome) { o.result.Report.Idle = "it never became the leader" },
		"":                           func(*outcome) {},
	} {
		out := measured(Options{Scenarios: storiesOf("a", "b", "c-change"), UpdateBudget: true}, usages)
		spoil(out)
		if got := out.report(nil).NoBudget; got != want {
			t.Errorf("the reason is %q, want %q", got, want)
		}
	}
}

func TestOneStormOfEventsIsReportedOnce(t *testing.T) {
	out := measured(Options{Scenarios: storiesOf("a", "b")}, map[string]cost.Usage{"a": {}, "b": {}})
	storm := judge.Finding{ID: "1", Verdict: judge.EventStorm, Sentence: "it writes 14 Events"}
	other := storm
	other.Sentence = "it writes 15 Events"
	out.loops(storm, &lab.Watched{})
	out.loops(other, &lab.Watched{})
	if r := out.result.Report; len(r.Remarks) != 1 || len(r.Findings) != 0 {
		t.Errorf("%+v", []*report.Report{r})
	}
}

package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// shellLab returns a program that replaces a lab: a shell that reads each request into
// $line and answers it as the given cases define.
func shellLab(t *testing.T, cases string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lab")
	script := "#!/bin/sh\nwhile read -r line; do case \"$line\" in\n" + cases + "\n*'\"control\"'*) echo '{\"knocked\":{}}' ;;\n*) echo '{}' ;;\nesac; done\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"/bin/sh", path}
}

// learns returns a case for shellLab that answers with a lesson, in which the given faults
// are planned.
func learns(t *testing.T, faults ...plan.Planned) string {
	t.Helper()
	return teaches(t, &lab.Lesson{Plan: plan.Plan{Faults: faults}})
}

// teaches returns a case for shellLab that answers with the lesson.
func teaches(t *testing.T, lesson *lab.Lesson) string {
	t.Helper()
	if lesson.Scenario == nil {
		lesson.Scenario = &scenario.Scenario{Name: "life", Steps: []scenario.Step{{Name: "create"}}}
	}
	lesson.Runs, lesson.Writes = 3, 1
	data, err := json.Marshal(map[string]any{"lesson": lesson})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "lesson")
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("*'\"learn\"'*) cat %s ;;", path)
}

const shows = `echo '{"knocked":{"findings":[{"id":"1","verdict":"DIVERGED","scenario":"life","step":"create","sentence":"it is gone"}]}}'`

func runIn(ctx context.Context, t *testing.T, program []string, o Options) (*Result, error) {
	t.Helper()
	o.Program, o.Dir, o.Workers = program, t.TempDir(), max(o.Workers, 1)
	o.Scenarios = []*scenario.Scenario{{Name: "life", Steps: []scenario.Step{{Name: "create"}}}}
	return Run(ctx, o)
}

func TestCheckWithoutFindingsIsClean(t *testing.T) {
	program := shellLab(t, learns(t, at(fault.KillLost, "a"), at(fault.Conflict, "b"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;")
	result, err := runIn(t.Context(), t, program, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; r.ExitCode() != 0 || r.Runs != 5 || r.References != 3 || len(r.Tried) != 2 {
		t.Errorf("the report is %+v", r)
	}
}

func TestFindingIsConfirmedByTwoMoreRunsAndTwoWithoutTheFault(t *testing.T) {
	program := shellLab(t, learns(t, at(fault.KillLost, "a"), at(fault.Conflict, "b"))+"\n*'\"knock\"'*) "+shows+" ;;")
	result, err := runIn(t.Context(), t, program, Options{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if len(r.Findings) != 1 || r.Confirmations != 4 || r.Runs != 3+2+4 {
		t.Fatalf("%d findings after %d runs, %d of them to confirm", len(r.Findings), r.Runs, r.Confirmations)
	}
	if f := r.Findings[0]; f.Attempts != 3 || f.Reproduced != 3 || f.AlsoBy != 1 || f.Seed != 5 {
		t.Errorf("the finding is %+v", f)
	}
}

func TestFindingThatMissesOneRunIsTriedAgain(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "missed")
	shown := filepath.Join(t.TempDir(), "shown") // the finding shows in every run except the second
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+
		"\n*'\"knock\"'*) if [ -e "+shown+" ] && [ ! -e "+flag+" ]; then : > "+flag+"; echo '{\"knocked\":{}}'; else : > "+shown+"; "+shows+"; fi ;;")
	result, err := runIn(t.Context(), t, program, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; len(r.Findings) != 1 || r.Findings[0].Reproduced != 3 || r.Findings[0].Attempts != 4 {
		t.Errorf("findings %+v, inconclusive %+v", r.Findings, r.Inconclusive)
	}
}

func TestSymptomThatAlsoShowsWithoutTheFaultIsNoFinding(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "late")
	for what, control := range map[string]string{
		"diverged was found, but it also occurs without any fault":  shows,
		"diverged was found, but it also occurs without any fault ": "if [ -e " + flag + " ]; then " + shows + "; else : > " + flag + `; echo '{"knocked":{"inconclusive":"step create is late"}}'; fi`,
	} {
		what = strings.TrimSpace(what)
		program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) "+shows+" ;;\n*'\"control\"'*) "+control+" ;;")
		result, err := runIn(t.Context(), t, program, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := result.Report
		if len(r.Findings) != 0 || len(r.Inconclusive) != 1 || r.Inconclusive[0].Why != what {
			t.Errorf("findings %+v, inconclusive %+v", r.Findings, r.Inconclusive)
		}
	}
}

func TestFaultThatLeadsToAKnownPanicOnlyCountsForIt(t *testing.T) {
	panics := func(step, fault string) string {
		return `{"id":"` + step + `","verdict":"CRASHED","scenario":"life","step":"` + step + `","frame":"main.go:7","sentence":"it panics"` + fault + `}`
	}
	lesson := &lab.Lesson{Plan: plan.Plan{Faults: []plan.Planned{at(fault.KillLost, "a"), at(fault.Conflict, "b")}}}
	lesson.Findings = []judge.Finding{{ID: "1", Verdict: judge.Crashed, Scenario: "life", Step: "create", Frame: "main.go:7", Sentence: "it panics"}}
	program := shellLab(t, teaches(t, lesson)+
		"\n*'\"knock\"'*) echo '{\"knocked\":{\"findings\":["+panics("start", `,"fault":{"kind":"kill-lost"}`)+"]}}' ;;")
	result, err := runIn(t.Context(), t, program, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; len(r.Findings) != 1 || r.Findings[0].AlsoBy != 2 || r.Confirmations != 0 || len(r.Inconclusive) != 0 {
		t.Errorf("%d runs to confirm, findings %+v, inconclusive %+v", r.Confirmations, r.Findings, r.Inconclusive)
	}
}

func TestAnotherLoopInAStepWithAKnownLoopIsFound(t *testing.T) {
	lesson := &lab.Lesson{Plan: plan.Plan{Faults: []plan.Planned{at(fault.KillLost, "a")}}}
	lesson.Findings = []judge.Finding{{ID: "1", Verdict: judge.HotLoop, Scenario: "life", Step: "create", Sentence: "it keeps writing a"}}
	program := shellLab(t, teaches(t, lesson)+
		"\n*'\"knock\"'*) echo '"+`{"knocked":{"findings":[{"id":"2","verdict":"HOT LOOP","scenario":"life","step":"create","fault":{"kind":"kill-lost"},"sentence":"it keeps writing b"}]}}`+"' ;;")
	result, err := runIn(t.Context(), t, program, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; len(r.Findings) != 2 {
		t.Errorf("findings %+v, inconclusive %+v", r.Findings, r.Inconclusive)
	}
}

func TestRareSymptomOfOneFaultIsConfirmedByAnother(t *testing.T) {
	first := at(fault.KillLost, "a")
	seldom := at(fault.Conflict, "b")
	seldom.Rank = -1 // so it runs first
	flag := filepath.Join(t.TempDir(), "shown")
	program := shellLab(t, learns(t, first, seldom)+
		"\n*'\"conflict\"'*) if [ -e "+flag+" ]; then echo '{\"knocked\":{}}'; else : > "+flag+"; "+shows+"; fi ;;"+
		"\n*'\"knock\"'*) "+shows+" ;;")
	result, err := runIn(t.Context(), t, program, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if len(r.Findings) != 1 || r.Findings[0].Reproduced != 3 {
		t.Errorf("findings %+v", r.Findings)
	}
	if s := r.Inconclusive[0].Suspicion; s == nil || s.ID != "1" || s.Reproduced != 1 {
		t.Errorf("the unconfirmed finding is kept as %+v", s)
	}
	if len(r.Inconclusive) != 1 || r.Inconclusive[0].Why != "diverged was found in 1 of 4 runs" || r.Inconclusive[0].Fault.Kind != fault.Conflict {
		t.Errorf("inconclusive %+v", r.Inconclusive)
	}
}

func TestPlanOnlyRunsNoFault(t *testing.T) {
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) exit 1 ;;")
	result, err := runIn(t.Context(), t, program, Options{PlanOnly: true})
	if err != nil || len(result.Plan) != 1 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestACheckStartsAgainInALargerProfileAndSavesIt(t *testing.T) {
	for _, c := range []struct {
		profile string
		chosen  bool
		want    string
	}{
		{"gc", true, "workloads: the controller made workloads"}, {"gc", false, "gc"}, {"workloads", true, "workloads"},
	} {
		program := shellLab(t, teaches(t, &lab.Lesson{Workloads: true, Findings: []judge.Finding{{ID: "1a2b", Verdict: judge.Leak, Scenario: "life"}}}))
		var saved []string
		save := func(_ *judge.Finding, profile string, _ *scenario.Scenario, _ []trace.Entry) error {
			saved = append(saved, profile)
			return nil
		}
		result, err := runIn(t.Context(), t, program, Options{Profile: c.profile, ProfileChosen: c.chosen, PlanOnly: true, Save: save})
		if err != nil || result.Report.Profile != c.want {
			t.Errorf("profile %s, chosen %v: %+v, %v; want profile %q", c.profile, c.chosen, result, err, c.want)
		}
		// In a profile that is too small, a finding proves nothing.
		used, _, _ := strings.Cut(c.want, ":")
		if !slices.Equal(saved, []string{used}) || result.Profile != used {
			t.Errorf("profile %s, chosen %v: findings were saved for the profiles %q, and the result names %s", c.profile, c.chosen, saved, result.Profile)
		}
	}
}

func TestBudgetIsSharedByBothProfiles(t *testing.T) {
	program := shellLab(t, "*'\"learn\"'*) sleep 0.6 ;;&\n"+teaches(t, &lab.Lesson{Workloads: true}))
	program[0] = "/bin/bash" // for ;;&
	_, err := runIn(t.Context(), t, program, Options{Profile: "gc", ProfileChosen: true, PlanOnly: true, Budget: time.Second})
	if err == nil || !strings.Contains(err.Error(), "the budget was used up") {
		t.Errorf("with a budget of 1s, two runs of 0.6s end with %v", err)
	}
}

func TestTheReportNamesTheProfileAndWhatTheControllerDidNotFind(t *testing.T) {
	program := shellLab(t, teaches(t, &lab.Lesson{Missing: []string{"it asked for boats"}}))
	result, err := runIn(t.Context(), t, program, Options{Profile: "gc", ProfileReason: "it writes nothing", PlanOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; r.Profile != "gc: it writes nothing" || !slices.Contains(r.Notes, "it asked for boats") {
		t.Errorf("the profile is %q, the notes are %q", r.Profile, r.Notes)
	}
}

func TestCheckWithoutScenariosIsRefused(t *testing.T) {
	if _, err := Run(t.Context(), Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("%v", err)
	}
}

func TestIdleControllerIsNotReportedClean(t *testing.T) {
	one, two := &scenario.Scenario{Name: "one"}, &scenario.Scenario{Name: "two"}
	quiet := &fleet.Lesson{Lesson: &lab.Lesson{Said: "no kind is registered", Missing: []string{"it asked for boats"}}}
	for name, test := range map[string]struct {
		lessons map[string]*fleet.Lesson
		outside bool
		idle    bool
	}{
		"in both scenarios":     {map[string]*fleet.Lesson{"one": quiet, "two": quiet}, false, true},
		"in one of them":        {map[string]*fleet.Lesson{"one": quiet, "two": {Lesson: &lab.Lesson{Writes: 1}}}, false, false},
		"and has a finding":     {map[string]*fleet.Lesson{"one": quiet, "two": {Lesson: &lab.Lesson{Findings: []judge.Finding{{}}}}}, false, false},
		"and one is not learnt": {map[string]*fleet.Lesson{"one": quiet}, false, true},
		"but lacks permissions": {map[string]*fleet.Lesson{"one": quiet, "two": {Lesson: &lab.Lesson{Said: "no kind is registered", Findings: []judge.Finding{{Verdict: judge.RBACMissing}}}}}, false, true},
		"but perhaps elsewhere": {map[string]*fleet.Lesson{"one": quiet, "two": quiet}, true, false},
	} {
		one.Endpoints = nil
		if test.outside {
			one.Endpoints = make([]scenario.Endpoint, 1)
		}
		c := &check{outcome: &outcome{Options: Options{Scenarios: []*scenario.Scenario{one, two}}, lessons: test.lessons}}
		err := c.idle()
		if (err != nil) != test.idle || err != nil && !strings.HasSuffix(err.Error(), "no kind is registered; it asked for boats") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAUsedUpBudgetNamesNoFigureThatTheUserDidNotGive(t *testing.T) {
	c := &check{outcome: newOutcome(Options{Budget: 400 * time.Millisecond})} // what was left for the second profile
	if got, want := c.tooEarly(errBudget.Error(), errBudget).Error(), "the budget was used up before a scenario was run without a fault; increase --budget, or omit it"; got != want {
		t.Errorf("%s", got)
	}
}

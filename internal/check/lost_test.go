package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/journal"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const late = `echo '{"knocked":{"inconclusive":"step create is late"}}'`

// scenarios returns scenarios with these names and one step each.
func scenarios(names ...string) (all []*scenario.Scenario) {
	for _, name := range names {
		all = append(all, &scenario.Scenario{Name: name, Steps: []scenario.Step{{Name: "create"}}})
	}
	return all
}

func TestScenarioThatCannotBeRunIsLeftOutWithTheReason(t *testing.T) {
	refuses := `*'"learn"'*'"bad"'*) echo '{"error":"step create: no such kind","setup":true}' ;;` + "\n"
	program := shellLab(t, refuses+learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;")
	result, err := Run(t.Context(), Options{Program: program, Dir: t.TempDir(), Workers: 1, Scenarios: scenarios("bad", "life")})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if want := (report.NotLearnt{Scenario: "bad", Why: "step create: no such kind"}); len(r.NotLearnt) != 1 || r.NotLearnt[0] != want {
		t.Errorf("left out are %+v", r.NotLearnt)
	}
	if r.ExitCode() != 0 || len(r.Tried) != 1 || r.Tried[0].Clean != 1 {
		t.Errorf("the report is %+v", r)
	}
	_, err = Run(t.Context(), Options{Program: program, Dir: t.TempDir(), Workers: 1, Scenarios: scenarios("bad")})
	if err == nil || err.Error() != "step create: no such kind" {
		t.Errorf("if no scenario is left: %v", err)
	}
}

func TestControllerThatNeverStartsIsNotTriedInEachScenario(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	program := shellLab(t, `*'"learn"'*) echo >> `+asked+`; echo '{"error":"the controller exited","setup":true,"gone":true,"printed":"fatal: no harbour"}' ;;`)
	_, err := Run(t.Context(), Options{Program: program, Dir: t.TempDir(), Workers: 1, Scenarios: scenarios("a", "b", "c")})
	if err == nil || !strings.Contains(err.Error(), "none of the 3 scenarios could be run without a fault; the first: the controller exited\n  fatal: no harbour") {
		t.Errorf("%v", err)
	}
	if data, _ := os.ReadFile(asked); len(data) != 1 {
		t.Errorf("the controller was started for %d scenarios", len(data))
	}
}

func TestLabThatDiesCostsNoResult(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "died")
	program := shellLab(t, learns(t, at(fault.KillLost, "a"), at(fault.Conflict, "b"))+
		"\n*'\"knock\"'*) if [ -e "+flag+" ]; then echo '{\"knocked\":{}}'; else : > "+flag+"; kill -9 $$; fi ;;")
	result, err := runIn(t.Context(), t, program, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; r.ExitCode() != 0 || len(r.Inconclusive) != 0 || len(r.LeftOut) != 0 || r.Runs != 5 {
		t.Errorf("the report is %+v", r)
	}
}

func TestLabsThatKeepDyingEndTheCheckWithWhatIsKnown(t *testing.T) {
	var all []plan.Planned
	for i := range 20 {
		all = append(all, at(fault.KillLost, fmt.Sprint(i)))
	}
	program := shellLab(t, learns(t, all...)+"\n*'\"knock\"'*) kill -9 $$ ;;")
	result, err := runIn(t.Context(), t, program, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if r.ExitCode() != 2 || !strings.HasPrefix(r.Stopped, "stopped, because the planes kept failing: plane 1 exited unexpectedly") {
		t.Errorf("exit code %d, stopped %q", r.ExitCode(), r.Stopped)
	}
	if len(r.LeftOut)+len(r.Inconclusive) != len(all) || len(r.LeftOut) == 0 {
		t.Errorf("%d left out, %d inconclusive", len(r.LeftOut), len(r.Inconclusive))
	}
}

func TestInconclusiveRunsNeverCostAConfirmedFinding(t *testing.T) {
	for name, control := range map[string]string{
		"first":  "if [ -e FLAG ]; then echo '{\"knocked\":{}}'; else : > FLAG; " + late + "; fi",
		"always": late,
	} {
		flag := filepath.Join(t.TempDir(), "late")
		program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) "+shows+" ;;\n*'\"control\"'*) "+strings.ReplaceAll(control, "FLAG", flag)+" ;;")
		result, err := runIn(t.Context(), t, program, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := result.Report
		if len(r.Findings) != 1 || r.ExitCode() != 1 || len(r.Inconclusive) != 0 {
			t.Errorf("%s: findings %+v, inconclusive %+v", name, r.Findings, r.Inconclusive)
		}
		if noted := strings.Contains(strings.Join(r.Notes, " "), "scenario life is unsteady: only 0 of 5 runs"); noted != (name == "always") {
			t.Errorf("%s: the notes are %q", name, r.Notes)
		}
	}
}

func TestFindingThatAControlRunStraysToIsNotReported(t *testing.T) {
	finding := `{"id":"1","verdict":"DIVERGED","scenario":"life","step":"create","differences":[{"object":"ConfigMap a/b","path":"data.x"},{"object":"ConfigMap a/b","path":"data.y"}]}`
	for name, tt := range map[string]struct {
		strayed string
		found   int
	}{
		"in the same places":  {`{"object":"ConfigMap a/b","path":"data.x"},{"object":"ConfigMap a/b","path":"data.y"}`, 0},
		"in the whole field":  {`{"object":"ConfigMap a/b","path":"data"}`, 0},
		"in one of them":      {`{"object":"ConfigMap a/b","path":"data.x"}`, 1},
		"in another object":   {`{"object":"ConfigMap a/c","path":"data.x"}`, 1},
		"because it was gone": {`{"object":"ConfigMap a/b"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			program := shellLab(t, learns(t, at(fault.KillLost, "a"))+
				"\n*'\"knock\"'*) echo '{\"knocked\":{\"findings\":["+finding+"]}}' ;;"+
				"\n*'\"control\"'*) echo '{\"knocked\":{\"inconclusive\":\"strayed\",\"strayed\":{\"step\":\"create\",\"differences\":["+tt.strayed+"]}}}' ;;")
			result, err := runIn(t.Context(), t, program, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r := result.Report; len(r.Findings) != tt.found || len(r.Inconclusive) != 1-tt.found {
				t.Errorf("findings %+v, inconclusive %+v", r.Findings, r.Inconclusive)
			}
		})
	}
}

func TestRepetitionThatProvesNothingDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	count := "mkdir " + dir + "/1 2>/dev/null && " + shows + " || { mkdir " + dir + "/2 2>/dev/null && " + late + " || " + shows + "; }"
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) "+count+" ;;")
	result, err := runIn(t.Context(), t, program, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; len(r.Findings) != 1 || r.Findings[0].Attempts != 3 || r.Findings[0].Reproduced != 3 {
		t.Errorf("findings %+v, inconclusive %+v", r.Findings, r.Inconclusive)
	}
}

// hangs returns a lab that answers the request for the first fault, and never answers the next
// request.
func hangs(t *testing.T, reached string) []string {
	t.Helper()
	return shellLab(t, learns(t, at(fault.KillLost, "a"), at(fault.Conflict, "b"))+
		"\n*'\"knock\"'*'\"b\"'*) : > "+reached+"; cat >/dev/null; exit 0 ;;\n*'\"knock\"'*) "+shows+" ;;")
}

func TestInterruptedCheckReportsWhatItKnowsAndIsResumed(t *testing.T) {
	dir, reached := t.TempDir(), filepath.Join(t.TempDir(), "reached")
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Stat(reached); err == nil || ctx.Err() != nil {
				interrupt()
				return
			}
		}
	}()
	h := journal.Header{Program: "v1", Seed: 5, Started: time.Now()}
	var mu sync.Mutex
	var saved []string
	o := Options{Seed: 5, Journal: journal.New(dir, h), Save: func(f *judge.Finding, _ string, _ *scenario.Scenario, _ []trace.Entry) error {
		mu.Lock()
		defer mu.Unlock()
		saved = append(saved, f.ID)
		f.File = "saved"
		return nil
	}}
	result, err := runIn(ctx, t, hangs(t, reached), o)
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if r.Stopped != "interrupted after 1 of 2 faults" || r.ExitCode() != 1 || len(r.LeftOut) != 1 || r.LeftOut[0].Why != "the check was interrupted" {
		t.Errorf("stopped %q, exit code %d, left out %+v", r.Stopped, r.ExitCode(), r.LeftOut)
	}
	if !slices.Equal(saved, []string{"1"}) || len(r.Findings) != 1 || r.Findings[0].File != "saved" {
		t.Errorf("saved %v, found %+v", saved, r.Findings)
	}
	o.Journal.Close(false)

	o = Options{Seed: 5}
	if o.Journal, o.Known, err = journal.Resume(dir, h); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again")
	program := shellLab(t, learns(t, at(fault.KillLost, "a"), at(fault.Conflict, "b"))+
		"\n*'\"knock\"'*'\"b\"'*) echo '{\"knocked\":{}}' ;;\n*'\"knock\"'*) : > "+again+"; "+shows+" ;;")
	if result, err = runIn(t.Context(), t, program, o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(again); err == nil {
		t.Error("the resumed check ran a fault again")
	}
	r = result.Report
	if len(r.Findings) != 1 || r.Findings[0].Reproduced != 3 || r.Stopped != "" || len(r.Tried) != 2 || r.Tried[0].Found != 1 || r.Tried[1].Clean != 1 {
		t.Errorf("the report is %+v", r)
	}
}

func TestBudgetEndsEverything(t *testing.T) {
	t.Parallel()
	program := hangs(t, filepath.Join(t.TempDir(), "reached"))
	result, err := runIn(t.Context(), t, program, Options{Budget: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; len(r.LeftOut) == 0 || r.LeftOut[len(r.LeftOut)-1].Why != "the budget was used up" || r.Stopped != "" {
		t.Errorf("left out %+v, stopped %q", r.LeftOut, r.Stopped)
	}
	program = shellLab(t, `*'"learn"'*) cat >/dev/null; exit 0 ;;`)
	if _, err := runIn(t.Context(), t, program, Options{Budget: time.Second}); err == nil || !strings.Contains(err.Error(), "the budget was used up before a scenario") {
		t.Errorf("while learning: %v", err)
	}
}

func TestSuspicionThatIsInterruptedIsUnconfirmed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	once := "mkdir " + dir + "/1 2>/dev/null && " + shows + " || { cat >/dev/null; exit 0; }"
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) "+once+" ;;")
	result, err := runIn(t.Context(), t, program, Options{Budget: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if len(r.Inconclusive) != 1 || r.Inconclusive[0].Suspicion == nil || r.Inconclusive[0].Why != "diverged was found, but the budget was used up before it was confirmed" {
		t.Errorf("inconclusive %+v", r.Inconclusive)
	}
}

func TestSavedFindingIsFixedAfterThreeCleanRuns(t *testing.T) {
	p := at(fault.KillLost, "a")
	for runs, fixed := range map[int]bool{3: true, 2: false} {
		dir := t.TempDir()
		clean := "if false; then :; "
		for i := range runs {
			clean += fmt.Sprintf("elif mkdir %s/%d 2>/dev/null; then echo '{\"knocked\":{}}'; ", dir, i)
		}
		program := shellLab(t, learns(t, p)+"\n*'\"knock\"'*) "+clean+"else "+shows+"; fi ;;")
		result, err := runIn(t.Context(), t, program, Options{First: map[string][]fault.Fault{"life": {p.Fault}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(result.Recovered) == 1; got != fixed || fixed == (len(result.Report.Findings) == 1) {
			t.Errorf("after %d clean runs: recovered %+v, findings %+v", runs, result.Recovered, result.Report.Findings)
		}
	}
}

func TestControllerThatIsRefusedItsLeaseDidNoneOfItsWork(t *testing.T) {
	lesson := `{"lesson":{"scenario":{"name":"life"},"runs":3,"writes":0,"refused":true,"findings":[{"id":"r","verdict":"RBAC MISSING","scenario":"life"}]}}`
	program := shellLab(t, "*'\"learn\"'*) echo '"+lesson+"' ;;\n*'\"knock\"'*) exit 1 ;;")
	result, err := runIn(t.Context(), t, program, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := result.Report; r.ExitCode() != 2 || !strings.HasPrefix(r.Idle, "the controller never became the leader") || len(r.Findings) != 1 {
		t.Errorf("exit code %d, %q, %+v", r.ExitCode(), r.Idle, r.Findings)
	}
}

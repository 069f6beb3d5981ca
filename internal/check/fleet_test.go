package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// shellLab is a lab without a plane: a shell that reads requests and answers what
// the cases of the script say. In them $line is the request.
func shellLab(t *testing.T, cases string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lab")
	script := "#!/bin/sh\nwhile read -r line; do case \"$line\" in\n" + cases + "\n*'\"control\"'*) echo '{\"knocked\":{}}' ;;\n*) echo '{}' ;;\nesac; done\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"/bin/sh", path}
}

// learns is the case that answers a lesson with a plan.
func learns(t *testing.T, faults ...plan.Planned) string {
	t.Helper()
	data, err := json.Marshal(reply{Lesson: &lab.Lesson{
		Scenario: &scenario.Scenario{Name: "life", Steps: []scenario.Step{{Name: "create"}}}, Plan: plan.Plan{Faults: faults}, Runs: 3, Writes: 1,
	}})
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

func TestFindingIsConfirmedByTwoMoreRuns(t *testing.T) {
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

func TestWhatDoesNotShowOnceIsTriedMoreOften(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "missed")
	shown := filepath.Join(t.TempDir(), "shown") // in all but the second run
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

func TestWhatShowsWithoutTheFaultTooIsNoFinding(t *testing.T) {
	for what, control := range map[string]string{
		"it showed too":       shows,
		"step create is late": `echo '{"knocked":{"inconclusive":"step create is late"}}'`,
	} {
		program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) "+shows+" ;;\n*'\"control\"'*) "+control+" ;;")
		result, err := runIn(t.Context(), t, program, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := result.Report
		if len(r.Findings) != 0 || len(r.Inconclusive) != 1 || !strings.HasSuffix(r.Inconclusive[0].Why, "without any fault "+what) {
			t.Errorf("findings %+v, inconclusive %+v", r.Findings, r.Inconclusive)
		}
	}
}

func TestWhatOneFaultShowsNowAndThenIsFoundByAnotherThatShowsItEachTime(t *testing.T) {
	first := at(fault.KillLost, "a")
	seldom := at(fault.Conflict, "b")
	seldom.Rank = -1 // is run first
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
		t.Errorf("what did not show again is kept as %+v", s)
	}
	if len(r.Inconclusive) != 1 || r.Inconclusive[0].Why != "diverged showed in 1 of 4 runs" || r.Inconclusive[0].Fault.Kind != fault.Conflict {
		t.Errorf("inconclusive %+v", r.Inconclusive)
	}
}

func TestPlanIsLearntAndNothingRunIfThatIsAskedFor(t *testing.T) {
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) exit 1 ;;")
	result, err := runIn(t.Context(), t, program, Options{PlanOnly: true})
	if err != nil || len(result.Plan) != 1 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestLabThatDiesIsAnErrorWithItsLastLine(t *testing.T) {
	for name, cases := range map[string]string{
		"at once":        "*'\"setup\"'*) echo starting >&2; echo 'no memory' >&2; exit 1 ;;",
		"when it runs":   learns(t, at(fault.KillLost, "a")) + "\n*'\"knock\"'*) echo 'no memory' >&2; kill -9 $$ ;;",
		"when it learns": "*'\"learn\"'*) echo 'no memory' >&2; exit 0 ;;",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runIn(t.Context(), t, shellLab(t, cases), Options{})
			var ended *LabError
			if !errors.As(err, &ended) || ended.Number != 1 {
				t.Fatalf("%v", err)
			}
			// What it wrote may not have been read yet when it is seen to have ended.
			if !strings.Contains(err.Error(), "nothing can be said of the controller") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestRefusalOfALabIsPassedOn(t *testing.T) {
	_, err := runIn(t.Context(), t, shellLab(t, `*'"setup"'*) echo '{"error":"the definition is invalid","setup":true}' ;;`), Options{})
	var setup *SetupError
	if !errors.As(err, &setup) || err.Error() != "the definition is invalid" {
		t.Errorf("%v", err)
	}
}

func TestCheckWithoutScenariosIsRefused(t *testing.T) {
	if _, err := Run(t.Context(), Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("%v", err)
	}
}

func TestInterruptedCheckEndsItsLabs(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	reached := filepath.Join(t.TempDir(), "reached")
	ended := filepath.Join(t.TempDir(), "ended")
	// It answers the request only once its input has ended.
	program := shellLab(t, "*'\"learn\"'*) : > "+reached+"; cat > /dev/null; : > "+ended+"; exit 0 ;;")
	go func() {
		defer interrupt()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Stat(reached); err == nil || ctx.Err() != nil {
				return
			}
		}
	}()
	if _, err := runIn(ctx, t, program, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Errorf("the lab was not ended in order: %v", err)
	}
}

func TestAllIsDoneOnceWhateverTheLabs(t *testing.T) {
	f := &fleet{workers: []*worker{{number: 1}, {number: 2}, {number: 3}}}
	var mu sync.Mutex
	var done []int
	err := f.each(t.Context(), 20, func(_ context.Context, _ *worker, i int) error {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, i)
		return nil
	})
	slices.Sort(done)
	if err != nil || len(done) != 20 || done[0] != 0 || done[19] != 19 || len(slices.Compact(done)) != 20 {
		t.Errorf("done are %v, %v", done, err)
	}
}

func TestErrorOfOneEndsTheRest(t *testing.T) {
	f := &fleet{workers: []*worker{{number: 1}}}
	broken := errors.New("broken")
	n := 0
	err := f.each(t.Context(), 20, func(_ context.Context, _ *worker, i int) error {
		if n++; i == 2 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || n != 3 {
		t.Errorf("%d were done, then %v", n, err)
	}
}

func TestLabWithoutAPlaneRefusesAndGoesOn(t *testing.T) {
	in, out := io.Pipe()
	answers, answered := io.Pipe()
	worked := make(chan error, 1)
	go func() { worked <- Work(t.Context(), in, answered) }()
	decoder := json.NewDecoder(answers)
	for _, request := range []string{`{"learn":{"seed":1}}`, `{"knock":{"seed":1}}`} {
		if _, err := io.WriteString(out, request+"\n"); err != nil {
			t.Fatal(err)
		}
		var r reply
		if err := decoder.Decode(&r); err != nil || r.Error != "there is no plane yet" || r.Setup {
			t.Errorf("to %s it says %+v, %v", request, r, err)
		}
	}
	_ = out.Close()
	if err := <-worked; err != nil {
		t.Errorf("at the end of its input: %v", err)
	}
}

func TestLabRefusesAnUnknownProfileAsSetup(t *testing.T) {
	in, out := io.Pipe()
	answers, answered := io.Pipe()
	go func() { _ = Work(t.Context(), in, answered) }()
	defer func() { _ = out.Close() }()
	go func() { _, _ = io.WriteString(out, `{"setup":{"profile":"most","key":"YQ=="}}`) }()
	var r reply
	if err := json.NewDecoder(answers).Decode(&r); err != nil || !r.Setup || !strings.Contains(r.Error, "most") {
		t.Errorf("it says %+v, %v", r, err)
	}
}

func TestAControllerThatWritesNothingIsNotCalledClean(t *testing.T) {
	one, two := &scenario.Scenario{Name: "one"}, &scenario.Scenario{Name: "two"}
	quiet := &lesson{Lesson: &lab.Lesson{Said: "no kind is registered"}}
	for name, test := range map[string]struct {
		lessons map[string]*lesson
		outside bool
		idle    bool
	}{
		"in both scenarios":     {map[string]*lesson{"one": quiet, "two": quiet}, false, true},
		"in one of them":        {map[string]*lesson{"one": quiet, "two": {Lesson: &lab.Lesson{Writes: 1}}}, false, false},
		"and has a finding":     {map[string]*lesson{"one": quiet, "two": {Lesson: &lab.Lesson{Findings: []judge.Finding{{}}}}}, false, false},
		"and one is not learnt": {map[string]*lesson{"one": quiet}, false, false},
		"but perhaps elsewhere": {map[string]*lesson{"one": quiet, "two": quiet}, true, false},
	} {
		one.Endpoints = nil
		if test.outside {
			one.Endpoints = make([]scenario.Endpoint, 1)
		}
		c := &check{Options: Options{Scenarios: []*scenario.Scenario{one, two}}, lessons: test.lessons}
		err := c.idle()
		if (err != nil) != test.idle || err != nil && !strings.Contains(err.Error(), "no kind is registered") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

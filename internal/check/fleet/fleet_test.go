package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// shellFleet returns a fleet whose labs are shells. The shells read each request into $line
// and answer it as the given cases define.
func shellFleet(t *testing.T, cases string) *Fleet {
	t.Helper()
	script := "while read -r line; do case \"$line\" in\n" + cases + "\n*) echo '{}' ;;\nesac; done\n"
	f := New(Options{Program: []string{"/bin/sh", "-c", script}, Dir: t.TempDir()})
	t.Cleanup(f.Stop)
	return f
}

// started returns the only worker of a shell fleet.
func started(t *testing.T, cases string) *Worker {
	t.Helper()
	f := shellFleet(t, cases)
	if err := f.Grow(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return f.workers[0]
}

const answersLesson = `*'"learn"'*) echo '{"lesson":{"scenario":{"name":"life"},"runs":3}}' ;;`

func TestLessonOfOneLabIsReadByAnother(t *testing.T) {
	w := started(t, answersLesson)
	l, err := w.Learn(t.Context(), &scenario.Scenario{Name: "life"}, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	other := &server{lessons: map[string]*lab.Lesson{}}
	read, err := other.lesson(l.file)
	if err != nil || read.Runs != 3 || read.Scenario.Name != "life" {
		t.Errorf("the other lab reads %+v, %v", read, err)
	}
	if err := os.Remove(l.file); err != nil {
		t.Fatal(err)
	}
	if again, err := other.lesson(l.file); err != nil || again != read {
		t.Errorf("the second time it reads %+v, %v", again, err)
	}
}

func TestTraceOfAFindingIsHandedOverOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	entries := []trace.Entry{{Seq: 1, Instance: "controller-1", Fault: &trace.Fault{What: "applied"}}}
	if err := writeTrace(path, entries); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(entries, readTrace(path)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if entries := readTrace(path); entries != nil {
		t.Errorf("without a file there are %d entries", len(entries))
	}
}

func TestAShrunkFleetKeepsTheFirstLabsThatWork(t *testing.T) {
	f := shellFleet(t, "")
	if err := f.Grow(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	first := f.workers[0]
	first.stop()
	first.givenUp = &LabError{Number: 1}
	f.Shrink(2)
	var left []int
	for _, w := range f.workers {
		left = append(left, w.number)
	}
	if diff := cmp.Diff([]int{1, 2, 3}, left); diff != "" {
		t.Errorf("labs, -want +got:\n%s", diff)
	}
	worked := map[int]bool{}
	var mu sync.Mutex
	err := f.Each(t.Context(), 10, func(_ context.Context, w *Worker, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		worked[w.number] = true
		return nil
	})
	if err != nil || worked[1] || worked[4] {
		t.Errorf("%v; the labs %v worked, want 2 and 3", err, worked)
	}
	if f.Shrink(5); f.Len() != 3 {
		t.Errorf("%d labs are left, want the same three", f.Len())
	}
}

func TestLabThatDiesTwiceIsAnErrorWithItsLastLine(t *testing.T) {
	dies := "echo starting >&2; echo 'no memory' >&2; "
	for name, cases := range map[string]string{
		"during setup":   `*'"setup"'*) ` + dies + `exit 1 ;;`,
		"while learning": `*'"learn"'*) ` + dies + `exit 0 ;;`,
	} {
		t.Run(name, func(t *testing.T) {
			err := useAll(t.Context(), shellFleet(t, cases))
			var ended *LabError
			if !errors.As(err, &ended) || ended.Number != 1 {
				t.Fatalf("%v", err)
			}
			// The exit may be noticed before the last line of the output has been read, so
			// the error may lack the last line.
			if !strings.Contains(err.Error(), "the controller could not be checked") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestRunWhoseLabDiesIsMadeAgainInAnotherLab(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "died")
	once := "if [ -e " + flag + " ]; then echo '{\"knocked\":{\"pruned\":true}}'; else : > " + flag + "; kill -9 $$; fi"
	for name, run := range map[string]string{
		"it exits":            once,
		"it cannot go on":     strings.Replace(once, "kill -9 $$", `echo '{"error":"the plane failed"}'`, 1),
		"a repeat of the run": once,
	} {
		_ = os.Remove(flag)
		w := started(t, answersLesson+"\n*'\"knock\"'*|*'\"control\"'*) "+run+" ;;")
		l, err := w.Learn(t.Context(), &scenario.Scenario{Name: "life"}, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Knock(t.Context(), l, fault.Fault{Kind: fault.Restart}, 1, lab.Care{})
		if err != nil || !out.Pruned || out.Inconclusive != "" || w.replaced != 1 || w.failures != 0 {
			t.Errorf("%s: %+v, %v, after %d replacements", name, out, err, w.replaced)
		}
	}
}

func TestRunThatEndsTwoLabsIsInconclusive(t *testing.T) {
	w := started(t, answersLesson+`
*'"knock"'*) kill -9 $$ ;;
*'"control"'*) echo '{"knocked":{"pruned":true}}' ;;`)
	l, err := w.Learn(t.Context(), &scenario.Scenario{Name: "life"}, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.Knock(t.Context(), l, fault.Fault{Kind: fault.Restart}, 1, lab.Care{})
	if err != nil || !strings.HasPrefix(out.Inconclusive, "plane 1 exited unexpectedly: ") {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := w.Control(t.Context(), l, 1); err != nil || !out.Pruned || w.givenUp != nil {
		t.Errorf("the lab that replaced them answers %+v, %v", out, err)
	}
}

func TestLabsThatKeepFailingAreGivenUp(t *testing.T) {
	f := shellFleet(t, `*'"learn"'*) kill -9 $$ ;;`)
	if err := f.Grow(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	calls := make([]bool, 100)
	err := f.Each(t.Context(), len(calls), func(ctx context.Context, w *Worker, i int) error {
		calls[i] = true
		_, err := w.Learn(ctx, &scenario.Scenario{Name: "life"}, 1, false)
		var failed *LabError
		if !errors.As(err, &failed) {
			t.Errorf("%v", err)
		}
		return nil
	})
	var exhausted *ExhaustedError
	if !errors.As(err, &exhausted) || calls[len(calls)-1] {
		t.Errorf("%v", err)
	}
}

func TestFleetWithFewerLabsThanRequestedIsEnough(t *testing.T) {
	dir := t.TempDir()
	script := "while read -r line; do if mkdir " + dir + "/only 2>/dev/null; then echo '{}'; else exit 1; fi; done"
	f := New(Options{Program: []string{"/bin/sh", "-c", script}, Dir: t.TempDir()})
	defer f.Stop()
	if err := f.Grow(t.Context(), 3); err != nil || f.Len() != 1 {
		t.Errorf("%d labs, %v", f.Len(), err)
	}
}

func TestHurriedLabIsKilled(t *testing.T) {
	hurry := make(chan struct{})
	close(hurry)
	f := New(Options{Program: []string{"/bin/sh", "-c", "read -r line; echo '{}'; while :; do sleep 1; done"}, Dir: t.TempDir(), Hurry: hurry})
	if err := f.Grow(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cmd := f.workers[0].cmd
	f.Stop()
	if status := cmd.ProcessState; status == nil || status.Exited() {
		t.Errorf("the lab ended with %v", status)
	}
}

// useAll starts a lab and sends it each kind of request.
func useAll(ctx context.Context, f *Fleet) error {
	if err := f.Grow(ctx, 1); err != nil {
		return err
	}
	w := f.workers[0]
	l, err := w.Learn(ctx, &scenario.Scenario{Name: "life"}, 1, false)
	if err != nil {
		return err
	}
	if _, err := w.Knock(ctx, l, fault.Fault{Kind: fault.Restart}, 1, lab.Care{}); err != nil {
		return err
	}
	_, err = w.Control(ctx, l, 1)
	return err
}

func TestAnswerWithoutItsResultIsAnError(t *testing.T) {
	for want, cases := range map[string]string{
		"plane 1 returned no result for the runs without a fault": "",
		"plane 1 returned no verdict":                             answersLesson,
	} {
		if err := useAll(t.Context(), shellFleet(t, cases)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestRefusalOfALabIsPassedOn(t *testing.T) {
	err := useAll(t.Context(), shellFleet(t, `*'"setup"'*) echo '{"error":"the CRD is invalid","setup":true}' ;;`))
	var setup *SetupError
	if !errors.As(err, &setup) || err.Error() != "the CRD is invalid" {
		t.Errorf("%v", err)
	}
}

func TestInterruptedRequestEndsTheLabInOrder(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	reached := filepath.Join(t.TempDir(), "reached")
	ended := filepath.Join(t.TempDir(), "ended")
	// The lab exits only when its input ends.
	f := shellFleet(t, "*'\"learn\"'*) : > "+reached+"; cat > /dev/null; : > "+ended+"; exit 0 ;;")
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
	if err := useAll(ctx, f); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	f.Stop()
	if _, err := os.Stat(ended); err != nil {
		t.Errorf("the lab did not exit in order: %v", err)
	}
}

func TestFleetGrowsAndNeverShrinks(t *testing.T) {
	f := shellFleet(t, "")
	for _, step := range []struct{ ask, want int }{{2, 2}, {1, 2}, {3, 3}} {
		if err := f.Grow(t.Context(), step.ask); err != nil || f.Len() != step.want {
			t.Errorf("after a request for %d labs there are %d, want %d: %v", step.ask, f.Len(), step.want, err)
		}
	}
}

func TestEachItemIsHandledOnce(t *testing.T) {
	f := &Fleet{workers: []*Worker{{number: 1}, {number: 2}, {number: 3}}}
	var mu sync.Mutex
	var done []int
	err := f.Each(t.Context(), 20, func(_ context.Context, _ *Worker, i int) error {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, i)
		return nil
	})
	slices.Sort(done)
	if err != nil || len(done) != 20 || done[0] != 0 || done[19] != 19 || len(slices.Compact(done)) != 20 {
		t.Errorf("the calls were for %v, %v", done, err)
	}
}

func TestErrorOfOneItemEndsTheRest(t *testing.T) {
	f := &Fleet{workers: []*Worker{{number: 1}}}
	broken := errors.New("broken")
	n := 0
	err := f.Each(t.Context(), 20, func(_ context.Context, _ *Worker, i int) error {
		if n++; i == 2 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || n != 3 {
		t.Errorf("after %d calls: %v", n, err)
	}
}

func TestLabWithoutAPlaneRefusesAndGoesOn(t *testing.T) {
	in, out := io.Pipe()
	answers, answered := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(t.Context(), in, answered) }()
	decoder := json.NewDecoder(answers)
	for _, request := range []string{`{"learn":{"seed":1}}`, `{"knock":{"seed":1}}`} {
		if _, err := io.WriteString(out, request+"\n"); err != nil {
			t.Fatal(err)
		}
		var r reply
		if err := decoder.Decode(&r); err != nil || r.Error != "the plane is not set up yet" || r.Setup {
			t.Errorf("the answer to %s is %+v, %v", request, r, err)
		}
	}
	_ = out.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve returned at the end of its input: %v", err)
	}
}

func TestLabRefusesAnUnknownProfileAsSetup(t *testing.T) {
	in, out := io.Pipe()
	answers, answered := io.Pipe()
	go func() { _ = Serve(t.Context(), in, answered) }()
	defer func() { _ = out.Close() }()
	go func() {
		_ = json.NewEncoder(out).Encode(request{Setup: &lab.Config{Profile: "most", Key: []byte("a"), Dir: t.TempDir()}})
	}()
	var r reply
	if err := json.NewDecoder(answers).Decode(&r); err != nil || !r.Setup || !strings.Contains(r.Error, "most") {
		t.Errorf("it answers %+v, %v", r, err)
	}
}

func TestNothingThatAnAnswerQuotesHoldsASecretValue(t *testing.T) {
	const secret = "planted-4711-secret"
	scrub.Known.Keep(secret)
	quotes := []string{"it printed " + secret}
	found := []judge.Finding{{Verdict: judge.Crashed, Sentence: quotes[0], Detail: quotes[0]}}
	answer := &reply{
		Error:   quotes[0],
		Lesson:  &lab.Lesson{Said: quotes[0], Dropped: slices.Clone(quotes), Missing: slices.Clone(quotes), Notes: slices.Clone(quotes), Findings: slices.Clone(found)},
		Outcome: &Outcome{NotApplied: quotes[0], Inconclusive: quotes[0], Strayed: &evidence.Strayed{Differences: []state.Difference{{Got: quotes[0]}}}, Findings: slices.Clone(found)},
		Watched: &lab.Watched{Failed: quotes[0], What: quotes[0], Beats: slices.Clone(quotes), Findings: slices.Clone(found)},
	}
	if err := conceal(answer); err != nil {
		t.Fatal(err)
	}
	shown, err := json.MarshalIndent(answer, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(shown), secret) {
		t.Errorf("the answer is\n%s", shown)
	}
}

func TestAControllerThatNoRequestComesFromIsNotTriedInEachScenario(t *testing.T) {
	got := refusal(errors.Join(&lab.UnheardError{Name: "ships"}))
	if !got.Setup || !got.Gone || !strings.Contains(got.Error, "no request reached the control plane from ships") {
		t.Errorf("%+v", got)
	}
}

func TestNoTwoLabsShareAFolderEvenIfSomeDidNotStart(t *testing.T) {
	// Lab 1 does not start, so the fleet has fewer labs than it has used numbers.
	f := shellFleet(t, `*'"setup"'*'lab-1"'*) echo '{"error":"no memory"}' ;;`)
	if err := f.Grow(t.Context(), 3); err != nil || f.Len() != 2 {
		t.Fatalf("%d labs, %v", f.Len(), err)
	}
	if err := f.Grow(t.Context(), 4); err != nil || f.Len() != 4 {
		t.Fatalf("%d labs, %v", f.Len(), err)
	}
	folders := map[string]bool{}
	for _, w := range f.workers {
		folders[w.dir] = true
	}
	if len(folders) != 4 {
		t.Errorf("4 labs have the folders %v", folders)
	}
}

package lab

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// armed returns a knock with a burst of errors at the first creation of a Pod in step s.
func armed(t *testing.T) *knock {
	t.Helper()
	f := fault.Fault{Kind: fault.ErrorBurst, Point: fault.Point{Step: "s", Verb: "create", Resource: "pods", Object: "default/a", Occurrence: 1}}
	r := &run{log: trace.NewLog(time.Now()), out: &evidence.Run{}, fault: &f}
	r.knock = &knock{run: r, fault: f, matcher: fault.NewMatcher(f, nil, nil)}
	r.current.enter("s")
	return r.knock
}

// createPod sends the request to which the fault of armed applies, and reports whether it
// fails.
func createPod(k *knock) bool {
	call := &trace.Call{Verb: "create", Target: trace.Target{Resource: "pods", Namespace: "default", Name: "a"}}
	return k.Decide(call).Answer != nil
}

func TestErrorBurstAnswersNothingOnceHealingBegins(t *testing.T) {
	for _, s := range stages[1:] { // the first stage only compares
		name := s.name
		k := armed(t)
		if !createPod(k) {
			t.Fatal("the burst did not begin")
		}
		failed := errors.New("the stage stops here")
		_, err := k.run.help(t.Context(), stage{name: name, do: func(*run, context.Context) error {
			if createPod(k) {
				t.Errorf("%s: a request failed after healing had begun", name)
			}
			return failed
		}}, "s", nil)
		if !errors.Is(err, failed) {
			t.Errorf("%s: %v", name, err)
		}
		var notes []string
		for _, e := range k.run.log.Entries() {
			notes = append(notes, e.Fault.What)
		}
		if got, want := strings.Join(notes, " "), "applied ended "+string(name); got != want {
			t.Errorf("the trace notes %q, want %q", got, want)
		}
	}
}

func TestErrorBurstThatIsCompleteEndsWithoutANote(t *testing.T) {
	k := armed(t)
	for n := range 3 {
		if !createPod(k) {
			t.Fatalf("request %d of the burst succeeded", n+1)
		}
	}
	k.end()
	for _, e := range k.run.log.Entries() {
		if e.Fault.What != "applied" {
			t.Errorf("the trace notes %q, although the burst had no answers left", e.Fault.What)
		}
	}
}

func TestFaultThatHasNotBegunIsNotEnded(t *testing.T) {
	k := armed(t)
	k.end()
	if !createPod(k) {
		t.Error("the fault ended before it began")
	}
}

func TestWhatIsHeldBackIsReleasedBeforeHealing(t *testing.T) {
	k := armed(t)
	createPod(k)
	released := false
	k.keep("s", func() { released = true })
	k.end()
	if !released {
		t.Error("the fault still holds something back")
	}
}

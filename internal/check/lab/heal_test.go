package lab

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/inject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// burst returns a run in step s with a burst of errors at the first creation of a Pod.
func burst(t *testing.T) *run {
	t.Helper()
	r := &run{log: trace.NewLog(time.Now()), out: &evidence.Run{}}
	r.injection = inject.New(inject.Config{Log: r.log, Fault: fault.Fault{
		Kind: fault.ErrorBurst, Point: fault.Point{Step: "s", Verb: "create", Resource: "pods", Object: "default/a", Occurrence: 1},
	}})
	r.injection.Enter("s")
	return r
}

// createPod sends the request to which the fault of burst applies, and reports whether it
// fails.
func createPod(r *run) bool {
	call := &trace.Call{Verb: "create", Target: trace.Target{Resource: "pods", Namespace: "default", Name: "a"}}
	return r.injection.Decide(call).Answer != nil
}

func TestErrorBurstAnswersNothingOnceHealingBegins(t *testing.T) {
	for _, s := range stages[1:] { // the first stage only compares
		name := s.name
		r := burst(t)
		if !createPod(r) {
			t.Fatal("the burst did not begin")
		}
		failed := errors.New("the stage stops here")
		_, err := r.help(t.Context(), stage{name: name, do: func(*run, context.Context) error {
			if createPod(r) {
				t.Errorf("%s: a request failed after healing had begun", name)
			}
			return failed
		}}, "s", nil)
		if !errors.Is(err, failed) {
			t.Errorf("%s: %v", name, err)
		}
		var notes []string
		for _, e := range r.log.Entries() {
			notes = append(notes, e.Fault.What)
		}
		if got, want := strings.Join(notes, " "), "applied ended "+string(name); got != want {
			t.Errorf("the trace notes %q, want %q", got, want)
		}
	}
}

package inject

import (
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// armed returns a burst of errors at the first creation of a Pod in step s, which has begun.
func armed() *Injection {
	i := New(Config{
		Fault: fault.Fault{Kind: fault.ErrorBurst, Point: fault.Point{Step: "s", Verb: "create", Resource: "pods", Object: "default/a", Occurrence: 1}},
		Log:   trace.NewLog(time.Now()),
	})
	i.Enter("s")
	return i
}

// createPod sends the request to which the fault of armed applies, and reports whether it
// fails.
func createPod(i *Injection) bool {
	call := &trace.Call{Verb: "create", Target: trace.Target{Resource: "pods", Namespace: "default", Name: "a"}}
	return i.Decide(call).Answer != nil
}

func TestErrorBurstThatIsCompleteEndsWithoutANote(t *testing.T) {
	i := armed()
	for n := range 3 {
		if !createPod(i) {
			t.Fatalf("request %d of the burst succeeded", n+1)
		}
	}
	i.End()
	for _, e := range i.config.Log.Entries() {
		if e.Fault.What != "applied" {
			t.Errorf("the trace notes %q, although the burst had no answers left", e.Fault.What)
		}
	}
}

func TestFaultThatHasNotBegunIsNotEnded(t *testing.T) {
	i := armed()
	i.End()
	if !createPod(i) {
		t.Error("the fault ended before it began")
	}
}

func TestWhatIsHeldBackIsReleasedBeforeHealing(t *testing.T) {
	i := armed()
	createPod(i)
	released := false
	i.keep("s", func() { released = true })
	i.End()
	if !released {
		t.Error("the fault still holds something back")
	}
}

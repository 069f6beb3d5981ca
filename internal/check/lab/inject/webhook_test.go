package inject

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// door is a gate that records whether it is closed, and opens with an error.
type door struct {
	closed atomic.Bool
	err    error
}

func (d *door) Close() { d.closed.Store(true) }

func (d *door) Open() error { d.closed.Store(false); return d.err }

// atDoor returns a fault that closes the door at the first update of a ConfigMap, which has been forwarded
// and is answered with the code.
func atDoor(t *testing.T, d *door, code int) *Injection {
	t.Helper()
	i := New(Config{
		Fault: fault.Fault{Kind: fault.WebhookDown, Point: fault.Point{Step: "s", Verb: "update", Resource: "configmaps", Object: "d/a", Occurrence: 1}},
		Log:   trace.NewLog(time.Now()), Webhooks: d,
	})
	i.Attach(instance.New(t.Context(), instance.Config{}))
	i.Enter("s")
	if a := i.Decide(write("update", "d", "before")); a.Before != nil || d.closed.Load() {
		t.Fatal("the webhooks are unreachable before the fault")
	}
	call := write("update", "d", "a")
	a := i.Decide(call)
	if a.Answer != nil || a.Swallow || a.Drop || a.Before == nil {
		t.Fatalf("the action is %+v, but the server has to decide about the write", a)
	}
	if err := a.Before(t.Context()); err != nil || !d.closed.Load() {
		t.Fatalf("the webhooks are reachable when the write is forwarded: %v", err)
	}
	call.Code = code
	a.Committed(call)
	return i
}

func TestTheWebhooksAreUnreachableUntilRest(t *testing.T) {
	d := &door{}
	i := atDoor(t, d, 500)
	if !i.HoldsUntilRest() || i.RetryDue() != 0 || !i.Release("s") || d.closed.Load() {
		t.Error("the webhooks are not reachable at rest")
	}
	if due := i.RetryDue(); due <= 0 || due > rest.RetryMargin+time.Minute {
		t.Errorf("clients that were refused retry within %s", due)
	}
	if out := i.Outcome(); !out.Applied || out.NotApplied != "" || ends(i) != 1 {
		t.Errorf("%+v, the end is noted %d times", out, ends(i))
	}
}

func TestTheWebhooksAreReachableAgainEvenIfTheStepIsNeverAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{}
		i := atDoor(t, d, 500)
		<-time.After(fault.RefusalLasts + time.Millisecond)
		synctest.Wait()
		if d.closed.Load() {
			t.Fatalf("the webhooks are unreachable after %s", fault.RefusalLasts)
		}
		if n := ends(i); n != 1 {
			t.Errorf("the end is noted %d times", n)
		}
		if i.Release("s"); ends(i) != 1 {
			t.Error("the end is noted again at rest")
		}
		if due := i.RetryDue(); due < fault.RefusalLasts || due > fault.RefusalLasts+rest.RetryMargin {
			t.Errorf("clients that were refused for %s retry within %s", fault.RefusalLasts, due)
		}
	})
}

func TestAWriteThatNeedsNoWebhookShowsNothing(t *testing.T) {
	out := atDoor(t, &door{}, 200).Outcome()
	if !strings.Contains(out.NotApplied, "without calling a webhook") {
		t.Errorf("%+v", out)
	}
}

func TestWebhooksThatStayUnreachableShowNothing(t *testing.T) {
	i := atDoor(t, &door{err: errors.New("the port is taken")}, 500)
	i.End()
	if out := i.Outcome(); out.NotApplied != "the port is taken" {
		t.Errorf("%+v", out)
	}
}

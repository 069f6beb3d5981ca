package inject

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// sleeping starts a controller that does nothing and needs no plane.
func sleeping(t *testing.T) *instance.Set {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	c := instance.New(t.Context(), instance.Config{
		Log: trace.NewLog(time.Now()), Output: output.NewTail(1 << 10), Release: func() {},
		Upstream: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		Spec: func(int, []byte) (process.Spec, error) {
			return process.Spec{Command: []string{"sh", "-c", "exec sleep 600"}, Env: os.Environ()}, nil
		},
	})
	t.Cleanup(c.Close)
	if err := c.Start(0); err != nil {
		t.Fatal(err)
	}
	return c
}

// killed starts a controller that only sleeps, and kills it after a write.
func killed(t *testing.T, explored func(context.Context, string) (string, bool, error)) (Outcome, *instance.Set) {
	t.Helper()
	i := New(Config{
		Fault:    fault.Fault{Kind: fault.KillAfter, Point: fault.Point{Step: "s", Verb: "create", Resource: "pods", Object: "d/a", Occurrence: 1}},
		Log:      trace.NewLog(time.Now()),
		Explored: explored,
	})
	c := sleeping(t)
	i.Attach(c)
	i.Enter("s")
	call := &trace.Call{Verb: "create", Target: trace.Target{Resource: "pods", Namespace: "d", Name: "a"}}
	i.Decide(call).Answered(call)
	return i.Outcome(), c
}

func TestAKillThatLeadsToAnExploredStateEndsTheRun(t *testing.T) {
	var in string
	out, c := killed(t, func(_ context.Context, step string) (string, bool, error) { in = step; return "state", true, nil })
	if want := (Outcome{Applied: true, State: "state", Pruned: true}); out != want || in != "s" {
		t.Errorf("the outcome in step %q is %+v, want %+v", in, out, want)
	}
	if _, err := c.Activity(); !errors.Is(err, ErrOver) {
		t.Errorf("the run goes on: %v", err)
	}
	until(t, c, func(a instance.Activity) bool { return a.Instances == 0 && !a.Starting })
}

// until waits until a condition of the controller holds.
func until(t *testing.T, c *instance.Set, holds func(instance.Activity) bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		next := c.Touched()
		if a, _ := c.Activity(); holds(a) {
			return
		}
		select {
		case <-next:
		case <-deadline:
			t.Fatal("the condition never holds")
		}
	}
}

func TestAKillThatLeadsToAnUnknownStateIsFollowedByAStart(t *testing.T) {
	for name, tt := range map[string]struct {
		explored func(context.Context, string) (string, bool, error)
		state    string
	}{
		"a new state":                          {func(context.Context, string) (string, bool, error) { return "state", false, nil }, "state"},
		"a state that could not be read":       {func(context.Context, string) (string, bool, error) { return "", true, errors.New("gone") }, ""},
		"a state that is not the complete one": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, c := killed(t, tt.explored)
			if want := (Outcome{Applied: true, State: tt.state}); out != want {
				t.Errorf("the outcome is %+v, want %+v", out, want)
			}
			until(t, c, func(a instance.Activity) bool { return a.Instances == 1 && !a.Starting })
			if _, err := c.Activity(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTerminationForwardsTheRequestAndStartsAnotherInstance(t *testing.T) {
	i := New(Config{
		Fault:    fault.Fault{Kind: fault.Terminate, Point: fault.Point{Step: "s", Verb: "create", Resource: "pods", Object: "d/a", Occurrence: 1}},
		Log:      trace.NewLog(time.Now()),
		Grace:    time.Minute,
		Explored: func(context.Context, string) (string, bool, error) { return "state", true, nil },
	})
	c := sleeping(t)
	i.Attach(c)
	i.Enter("s")
	before := c.Instances()
	a := i.Decide(&trace.Call{Verb: "create", Target: trace.Target{Resource: "pods", Namespace: "d", Name: "a"}})
	if a.Answer != nil || a.Swallow || a.Drop || a.Committed == nil {
		t.Errorf("the action is %+v, but the server has to carry out the request", a)
	}
	if err := a.Before(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, c, func(a instance.Activity) bool { return a.Instances == 1 && !a.Starting })
	if after := c.Instances(); after[0] == before[0] {
		t.Error("the same instance goes on")
	}
	if out := i.Outcome(); out != (Outcome{Applied: true}) {
		t.Errorf("the outcome is %+v: what happens during the shutdown has to be judged", out)
	}
}

func TestAFaultAtRestIsRefusedWithItsReason(t *testing.T) {
	i := New(Config{Fault: fault.Fault{Kind: fault.LoseLease, Point: fault.Point{Step: "s"}}, Log: trace.NewLog(time.Now())})
	i.Attach(&instance.Set{})
	if i.Enter("s"); !i.Due("s") || i.Due("other") {
		t.Fatal("the fault is not due exactly when its step is at rest")
	}
	if done, err := i.Strike(t.Context()); !done || !errors.Is(err, ErrOver) {
		t.Errorf("done is %t, %v", done, err)
	}
	if out := i.Outcome(); !strings.Contains(out.NotApplied, "the controller is not running") {
		t.Errorf("%+v", out)
	}
	if i.Due("s") {
		t.Error("the fault is due once more")
	}
}

func TestARunWithoutAFaultHoldsNothing(t *testing.T) {
	var i *Injection
	i.Attach(nil)
	i.Enter("s")
	i.End()
	if i.Applied() || i.AppliedIn("s") || i.Decides() || i.Due("s") || i.DownDuring("s") || i.Holds() || i.HoldsLonger() || i.Release("s") {
		t.Error("no fault does something")
	}
}

// killedTwice returns a fault that has killed a sleeping controller after the creation of a Pod.
func killedTwice(t *testing.T) (*Injection, *instance.Set) {
	t.Helper()
	at := fault.Point{Step: "s", Verb: "create", Resource: "pods", Object: "d/a", Occurrence: 1}
	i := New(Config{
		Fault:    fault.Fault{Kind: fault.KillAgain, Point: at, Again: fault.Point{Step: "s", Verb: "delete", Resource: "pods", Object: "d/a", Occurrence: 2}},
		Log:      trace.NewLog(time.Now()),
		Explored: func(context.Context, string) (string, bool, error) { return "state", false, nil },
	})
	c := sleeping(t)
	i.Attach(c)
	i.Enter("s")
	first := onPod("create")
	before := c.Instances()[0]
	i.Decide(onPod("delete")) // before the first kill, it does not count
	i.Decide(first).Committed(first)
	until(t, c, func(a instance.Activity) bool { return a.Instances == 1 && !a.Starting })
	if c.Instances()[0] == before {
		t.Fatal("the controller was not killed")
	}
	return i, c
}

func onPod(verb string) *trace.Call {
	return &trace.Call{Verb: verb, Target: trace.Target{Resource: "pods", Namespace: "d", Name: "a"}}
}

func TestTheControllerIsKilledAgainAfterAWriteOfItsRecovery(t *testing.T) {
	i, c := killedTwice(t)
	before := c.Instances()[0]
	for n, call := range []*trace.Call{onPod("create"), onPod("delete"), onPod("delete"), onPod("delete")} {
		a := i.Decide(call)
		if (a.Committed != nil) != (n == 2) {
			t.Errorf("write %d: the action is %+v", n, a)
		}
		if a.Committed != nil {
			a.Committed(call)
			until(t, c, func(a instance.Activity) bool { return a.Instances == 1 && !a.Starting })
		}
	}
	if c.Instances()[0] == before {
		t.Error("the controller was not killed again")
	}
	if out := i.Outcome(); out != (Outcome{Applied: true, State: "state"}) {
		t.Errorf("the outcome is %+v", out)
	}
}

func TestARunWithoutTheSecondWriteShowsNothing(t *testing.T) {
	i, _ := killedTwice(t)
	i.Decide(onPod("delete"))
	i.End()
	if a := i.Decide(onPod("delete")); a.Committed != nil {
		t.Error("the controller is killed again although healing has begun")
	}
	if out := i.Outcome(); out.NotApplied != "after the first kill, the controller did not send the 2nd DELETE pods d/a in step s in this run" {
		t.Errorf("%+v", out)
	}
}

package inject

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// An action carries out one kind of fault. Package fault describes the kinds.
type action struct {
	// request decides what happens to the request at the fault's point.
	request func(*Injection, *trace.Call) apiproxy.Action
	// begin is called when the step begins, for faults that are not applied at a request.
	begin func(*Injection)
	// rest returns the first phase of a fault that is applied after the step, once the world
	// is at rest.
	rest func(*Injection) phase
}

// A phase carries out a part of a fault while the world is at rest. A phase returns the next phase,
// which begins when the world is at rest again, or nil.
type phase func(context.Context) (next phase, err error)

// once returns the rest function of a fault with a single phase.
func once(do func(*Injection, context.Context) error) func(*Injection) phase {
	return func(i *Injection) phase {
		return func(ctx context.Context) (phase, error) { return nil, do(i, ctx) }
	}
}

// actions has one entry for each kind of fault.
var actions = map[fault.Kind]action{
	fault.KillBefore:   {request: killBefore},
	fault.KillLost:     {request: func(i *Injection, _ *trace.Call) apiproxy.Action { return apiproxy.Action{Committed: i.kill} }},
	fault.KillAgain:    {request: killFirst},
	fault.KillAfter:    {request: func(i *Injection, _ *trace.Call) apiproxy.Action { return apiproxy.Action{Answered: i.kill} }},
	fault.Terminate:    {request: terminate},
	fault.LoseResponse: {request: func(*Injection, *trace.Call) apiproxy.Action { return apiproxy.Action{Drop: true} }},
	fault.Conflict:     {request: conflict},
	fault.Hang:         {request: hang},
	fault.Forbid:       {request: refuseFrom(overQuota)},
	fault.Revoke:       {request: refuseFrom(revoked)},
	fault.WebhookDown:  {request: closeWebhooks},

	fault.Error500:   {request: answer},
	fault.Error503:   {request: answer},
	fault.TooMany429: {request: answer},
	fault.Timeout504: {request: answer},
	fault.ErrorBurst: {request: answer},

	fault.DelayWatch: {request: holdFrom, begin: holdStep},
	fault.LoseStates: {begin: holdStep},
	fault.DownDuring: {begin: func(*Injection) {}}, // the run kills and starts the controller, see Injection.DownDuring

	fault.Outage: {begin: beginOutage},

	fault.Restart:      {rest: once((*Injection).restart)},
	fault.StaleRestart: {rest: once((*Injection).staleRestart)},
	fault.OfflineStart: {rest: once((*Injection).offlineStart)},
	fault.FailingStart: {rest: once((*Injection).failingStart)},
	fault.DeleteChild:  {rest: once((*Injection).deleteChild)},
	fault.EditChild:    {rest: once((*Injection).editChild)},
	fault.AddFinalizer: {rest: once((*Injection).addFinalizer)},
	fault.LoseLease:    {rest: func(i *Injection) phase { return i.secondInstance }},
}

func (i *Injection) restart(context.Context) error {
	i.controller.KillAndStart()
	return nil
}

func killBefore(i *Injection, call *trace.Call) apiproxy.Action {
	return apiproxy.Action{Swallow: true, Before: func(context.Context) error { i.kill(call); return nil }}
}

// terminate asks the controller to exit while a request of it is on its way. The server carries out
// the request, even if the controller, which is shutting down, no longer waits for the answer. The
// state in which the controller ends is not looked up among the explored states: what it did while it
// was shutting down has to be judged as well.
func terminate(i *Injection, _ *trace.Call) apiproxy.Action {
	return apiproxy.Action{
		Before:    func(context.Context) error { i.controller.TerminateAndStart(i.config.Grace); return nil },
		Committed: func(*trace.Call) {},
	}
}

// kill kills the controller, and restarts it if no earlier run has shown the outcome.
func (i *Injection) kill(*trace.Call) {
	c := i.controller
	if i.config.Explored == nil {
		c.KillAndStart()
		return
	}
	c.Kill()
	reached, known, err := i.config.Explored(c.Context(), i.current())
	if err == nil {
		i.mu.Lock()
		i.state, i.pruned = reached, known
		i.mu.Unlock()
	}
	if err == nil && known {
		c.Fail(ErrOver)
		return
	}
	c.KillAndStart()
}

// killFirst kills the controller after a write, and waits for the write of the next instance after which
// the controller is killed again.
func killFirst(i *Injection, _ *trace.Call) apiproxy.Action {
	return apiproxy.Action{Committed: func(*trace.Call) {
		i.controller.Kill() // so that no request of this instance counts
		second := fault.Fault{Kind: fault.KillLost, Point: i.fault.Again}
		i.again.Store(fault.NewMatcher(second, i.config.Canonical, i.config.Change))
		i.controller.KillAndStart()
	}}
}

// killAgain kills the controller for the second time.
func (i *Injection) killAgain(call *trace.Call) apiproxy.Action {
	i.mu.Lock()
	i.killedAgain = true
	i.mu.Unlock()
	i.config.Log.Record(trace.Entry{Fault: &trace.Fault{What: "applied", Text: "killed again after " + i.fault.Again.String(), Call: call.ID}})
	return apiproxy.Action{Committed: i.kill}
}

// conflict writes the object of a request as another client, so that a write based on the earlier
// version gets a genuine conflict. When the step is at rest, conflict reverts the other
// client's write.
func conflict(i *Injection, call *trace.Call) apiproxy.Action {
	return apiproxy.Action{Before: func(ctx context.Context) error { return i.provoke(ctx, call.Target) }}
}

func (i *Injection) provoke(ctx context.Context, t trace.Target) error {
	resource := i.config.Cluster.At(schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}, t.Namespace)
	err := interference.Sign(ctx, resource, t.Name)
	if err != nil {
		i.refuse(fmt.Sprintf("another client could not write %s %s: %v", t.Resource, t.Name, err))
		return err
	}
	i.keep(i.current(), func() {
		_ = interference.Unsign(context.WithoutCancel(ctx), resource, t.Name) // the object may be gone
	})
	return nil
}

// holdFrom holds back watch events for the type of object in the request. holdFrom holds the events
// back before the request is sent, because a commit reaches the watches immediately.
func holdFrom(i *Injection, call *trace.Call) apiproxy.Action {
	return apiproxy.Action{Before: func(context.Context) error { i.hold(call.Target, i.current()); return nil }}
}

// holdStep holds back watch events for the type of object at the fault's point, from the
// beginning of a step.
func holdStep(i *Injection) {
	target, _ := fault.ParseResource(i.fault.Point.Resource)
	i.hold(target, cmp.Or(i.fault.Until, i.fault.Point.Step))
}

func answer(i *Injection, _ *trace.Call) apiproxy.Action { return answerFor(i.fault.Kind) }

// answerFor returns an action that answers a request in place of the API server.
func answerFor(kind fault.Kind) apiproxy.Action {
	a, _ := kind.Answer()
	return apiproxy.Action{RetryAfter: a.RetryAfter, Answer: &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(a.Code), Reason: a.Reason, Message: a.Message,
	}}
}

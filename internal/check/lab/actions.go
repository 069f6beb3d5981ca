package lab

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// An action carries out one kind of fault. Package fault describes the kinds.
type action struct {
	// request decides what happens to the request at the fault's point.
	request func(*knock, *trace.Call) apiproxy.Action
	// begin is called when the step begins, for faults that are not applied at a request.
	begin func(*knock)
	// rest is called after the step, once the world is at rest.
	rest func(context.Context, *knock) error
}

// actions has one entry for each kind of fault.
var actions = map[fault.Kind]action{
	fault.KillBefore:   {request: killBefore},
	fault.KillLost:     {request: func(k *knock, _ *trace.Call) apiproxy.Action { return apiproxy.Action{Committed: k.kill} }},
	fault.KillAfter:    {request: func(k *knock, _ *trace.Call) apiproxy.Action { return apiproxy.Action{Answered: k.kill} }},
	fault.LoseResponse: {request: func(*knock, *trace.Call) apiproxy.Action { return apiproxy.Action{Drop: true} }},
	fault.Conflict:     {request: conflict},

	fault.Error500:   {request: answer},
	fault.Error503:   {request: answer},
	fault.TooMany429: {request: answer},
	fault.Timeout504: {request: answer},
	fault.ErrorBurst: {request: answer},

	fault.DelayWatch: {request: holdFrom, begin: holdStep},
	fault.LoseStates: {begin: holdStep},
	fault.DownDuring: {begin: func(*knock) {}}, // run.step kills and starts the controller

	fault.Restart:      {rest: func(_ context.Context, k *knock) error { k.run.controller.KillAndStart(); return nil }},
	fault.StaleRestart: {rest: staleRestart},
	fault.DeleteChild:  {rest: deleteChild},
	fault.EditChild:    {rest: editChild},
	fault.AddFinalizer: {rest: addFinalizer},
	fault.LoseLease:    {rest: loseLease},
}

func killBefore(k *knock, call *trace.Call) apiproxy.Action {
	return apiproxy.Action{Swallow: true, Before: func(context.Context) error { k.kill(call); return nil }}
}

func conflict(k *knock, call *trace.Call) apiproxy.Action {
	return apiproxy.Action{Before: func(ctx context.Context) error { return k.provoke(ctx, call.Target) }}
}

// holdFrom holds back watch events for the type of object in the request. It holds them
// back before the request is sent, because a commit reaches the watches immediately.
func holdFrom(k *knock, call *trace.Call) apiproxy.Action {
	return apiproxy.Action{Before: func(context.Context) error { k.hold(call.Target, k.run.current.get()); return nil }}
}

// holdStep holds back watch events for the type of object at the fault's point, from the
// beginning of a step.
func holdStep(k *knock) {
	target, _ := fault.ParseResource(k.fault.Point.Resource)
	k.hold(target, cmp.Or(k.fault.Until, k.fault.Point.Step))
}

func answer(k *knock, _ *trace.Call) apiproxy.Action { return answerFor(k.fault.Kind) }

// answerFor returns an action that answers a request in place of the API server.
func answerFor(kind fault.Kind) apiproxy.Action {
	a, _ := kind.Answer()
	return apiproxy.Action{RetryAfter: a.RetryAfter, Answer: &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(a.Code), Reason: a.Reason, Message: a.Message,
	}}
}

package lab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// knock is the one fault of a run. Nil is none.
//
//	armed ──point reached──▶ applied ──at rest──▶ (held streams go on)
type knock struct {
	run     *run
	fault   fault.Fault
	matcher *fault.Matcher

	mu      sync.Mutex
	in      string // the step in which it was applied
	held    string // the step at whose rest release is called
	release func()

	// state is the store's after a kill. Whoever starts anew in it has no other
	// future than the one before him: what was clean is clean.
	state  string
	pruned atomic.Bool
}

var _ apiproxy.Decider = (*knock)(nil)

// current is the name of the step that is being done.
type current struct {
	mu   sync.Mutex
	name string
}

func (c *current) enter(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name
}

func (c *current) get() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.name
}

// happened notes that the fault has been applied.
func (k *knock) happened(call *trace.Call) {
	k.mu.Lock()
	k.in = k.run.step.get()
	k.mu.Unlock()
	k.run.out.Applied = true
	note := trace.Fault{What: "applied", Text: k.fault.String()}
	if call != nil {
		note.Call = call.ID
	}
	k.run.log.Record(trace.Entry{Fault: &note})
}

func (k *knock) applied() bool { return k != nil && k.appliedIn("") }

// appliedIn says whether the fault was applied in the step; "" is any.
func (k *knock) appliedIn(step string) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.in != "" && (step == "" || k.in == step)
}

// decides says whether the fault is one at a request.
func (k *knock) decides() bool { return k != nil && k.matcher != nil }

// Decide applies the fault at its point.
func (k *knock) Decide(call *trace.Call) apiproxy.Action {
	if !k.matcher.Match(call, k.run.step.get()) {
		return apiproxy.Action{}
	}
	return k.action(call)
}

func (k *knock) action(call *trace.Call) apiproxy.Action {
	kill := func(*trace.Call) { k.kill() }
	k.happened(call)
	switch k.fault.Kind {
	case fault.KillBefore:
		return apiproxy.Action{Swallow: true, Before: func(context.Context) error { kill(call); return nil }}
	case fault.KillLost:
		return apiproxy.Action{Committed: kill}
	case fault.KillAfter:
		return apiproxy.Action{Answered: kill}
	case fault.LoseResponse:
		return apiproxy.Action{Drop: true}
	case fault.Conflict:
		return apiproxy.Action{Before: func(ctx context.Context) error { return k.run.touch(ctx, call.Target) }}
	case fault.DelayWatch:
		// What is committed is shown at once: it has to be held back before.
		return apiproxy.Action{Before: func(context.Context) error { k.hold(call.Target, k.run.step.get()); return nil }}
	}
	return answerFor(k.fault.Kind)
}

// kill ends the controller and starts it again, unless all that can follow is
// known.
func (k *knock) kill() {
	c := k.run.controller
	if len(k.run.scenario.Endpoints) > 0 { // there is a state outside, too
		c.killAndStart()
		return
	}
	c.kill()
	if err := k.run.lab.caughtUp(c.ctx); err == nil {
		k.state = k.run.scenario.Name + "\x00" + k.run.step.get() + "\x00" + k.run.world().Hash()
		if k.run.lab.explored[k.state] {
			k.pruned.Store(true)
			c.fail(errStop)
			return
		}
	}
	c.killAndStart()
}

// answers are those that an API server gives when it is overloaded, is being
// replaced, or has failed inside.
var answers = map[fault.Kind]struct {
	code       int
	reason     metav1.StatusReason
	text       string
	retryAfter int
}{
	fault.Error500:   {http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed", 0},
	fault.ErrorBurst: {http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed", 0},
	fault.Error503:   {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down", 1},
	fault.TooMany429: {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later", 1},
	fault.Timeout504: {http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "request did not complete within the allotted timeout", 0},
}

func answerFor(kind fault.Kind) apiproxy.Action {
	a := answers[kind]
	return apiproxy.Action{RetryAfter: a.retryAfter, Answer: &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(a.code), Reason: a.reason, Message: a.text,
	}}
}

// ofType matches all watches of the type that a request is about.
func ofType(t trace.Target) func(trace.Target) bool {
	return func(other trace.Target) bool {
		return other.Group == t.Group && other.Resource == t.Resource
	}
}

// hold keeps back what the watches of the type show, until the world is at rest
// in the step. Then it goes on late, or the watch ends and the client has to list.
func (k *knock) hold(t trace.Target, until string) {
	k.keep(until, func() {
		k.run.controller.proxies(func(p *apiproxy.Proxy) {
			if k.fault.Kind == fault.LoseStates {
				p.Expire(ofType(t))
			}
			p.Release()
		})
	})
	k.run.controller.proxies(func(p *apiproxy.Proxy) { p.Hold(ofType(t)) })
}

// holding says whether something is held back beyond the end of the step that is
// being done.
func (k *knock) holding() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held != "" && k.held != k.run.step.get()
}

func (k *knock) downDuring(step string) bool {
	return k != nil && k.fault.Kind == fault.DownDuring && k.fault.Point.Step == step
}

// stepBegins applies faults that begin with a step.
func (k *knock) stepBegins(step string) {
	if k == nil || k.fault.Point.Step != step {
		return
	}
	switch {
	case k.fault.Kind == fault.DownDuring:
		k.happened(nil)
	case k.fault.Kind == fault.LoseStates, k.fault.Kind == fault.DelayWatch && k.fault.Point.Verb == "":
		until := cmp.Or(k.fault.Until, step)
		k.happened(nil)
		target, _ := fault.ParseResource(k.fault.Point.Resource)
		k.hold(target, until)
	}
}

// awaits says whether the fault is one at the rest after the step, and still to
// come.
func (k *knock) awaits(step string) bool {
	return k != nil && momentary[k.fault.Kind] != nil && k.fault.Point.Step == step && !k.applied()
}

// strike applies a fault at a moment of rest.
func (k *knock) strike(ctx context.Context) error {
	k.happened(nil)
	if err := momentary[k.fault.Kind](ctx, k); err != nil {
		k.run.out.Applied = false
		k.run.out.NotApplied = short(err.Error())
		return errStop
	}
	return nil
}

// letGo ends what is held back until this step.
func (k *knock) letGo(step string) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	held, release := k.held, k.release
	if held == step {
		k.held, k.release = "", nil
	}
	k.mu.Unlock()
	if held != step || release == nil {
		return false
	}
	k.run.log.Record(trace.Entry{Fault: &trace.Fault{What: "ended"}})
	release()
	return true
}

// keep has release called at the rest of the step until.
func (k *knock) keep(until string, release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held, k.release = until, release
}

// stepAfter is the name of the step after the named one, or its own if it is the
// last.
func (r *run) stepAfter(name string) string {
	for i := range r.scenario.Steps {
		if r.scenario.Steps[i].Name == name && i+1 < len(r.scenario.Steps) {
			return r.scenario.Steps[i+1].Name
		}
	}
	return name
}

// reached says why a fault was not applied although the scenario is over.
func (k *knock) reached() string {
	if k == nil || k.applied() {
		return ""
	}
	return fmt.Sprintf("the controller did not do %s in this run", k.fault.Point)
}

// short is the beginning of a text that may hold a whole object.
func short(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

package lab

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// knock applies the one fault of a run; nil means no fault.
//
//	armed ──point reached──▶ applied ──at rest──▶ (held streams go on) ──healing──▶ ended
type knock struct {
	run     *run
	fault   fault.Fault
	matcher *fault.Matcher

	mu      sync.Mutex
	in      string // the step in which the fault was applied
	refused string // why the fault could not be applied after all
	held    string // release is called when this step is at rest
	release []func()

	// state identifies the content of the store after a kill. A controller that starts from
	// the same content behaves the same, so this run can be cut short if an earlier run
	// recovered from this content.
	state  string
	pruned atomic.Bool
}

var _ apiproxy.Decider = (*knock)(nil)

// stepName is the name of the current step.
type stepName struct {
	mu   sync.Mutex
	name string
}

func (s *stepName) enter(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name = name
}

func (s *stepName) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name
}

// markApplied notes that the fault has been applied.
func (k *knock) markApplied(call *trace.Call) {
	k.mu.Lock()
	k.in = k.run.current.get()
	k.mu.Unlock()
	k.run.out.Applied = true
	note := trace.Fault{What: "applied", Text: k.fault.String()}
	if call != nil {
		note.Call = call.ID
	}
	k.run.log.Record(trace.Entry{Fault: &note})
}

func (k *knock) applied() bool { return k != nil && k.appliedIn("") }

// appliedIn reports whether the fault was applied in the step; "" stands for any step.
func (k *knock) appliedIn(step string) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.in != "" && (step == "" || k.in == step)
}

// decides reports whether the fault is applied at a request.
func (k *knock) decides() bool { return k != nil && k.matcher != nil }

// Decide applies the fault at its point.
func (k *knock) Decide(call *trace.Call) apiproxy.Action {
	decide := actions[k.fault.Kind].request
	if decide == nil || !k.matcher.Match(call, k.run.current.get()) {
		return apiproxy.Action{}
	}
	k.markApplied(call)
	return decide(k, call)
}

// kill kills the controller, and restarts it if no earlier run has shown the outcome.
func (k *knock) kill(*trace.Call) {
	c := k.run.controller
	if len(k.run.scenario.Endpoints) > 0 { // the hash of the world does not include external resources
		c.KillAndStart()
		return
	}
	c.Kill()
	if err := k.run.lab.caughtUp(c.Context()); err == nil {
		k.state = k.run.scenario.Name + "\x00" + k.run.current.get() + "\x00" + k.run.world(k.run.current.get()).Hash()
		if k.run.lab.explored[k.state] {
			k.pruned.Store(true)
			c.Fail(errStop)
			return
		}
	}
	c.KillAndStart()
}

// ofType matches targets of the same type as t.
func ofType(t trace.Target) func(trace.Target) bool {
	return func(other trace.Target) bool {
		return other.Group == t.Group && other.Resource == t.Resource
	}
}

// hold holds back watch events for objects of the same type as t. When the named step is at
// rest, the held events are sent, or the watch expires and the client lists again.
func (k *knock) hold(t trace.Target, until string) {
	k.keep(until, func() {
		k.run.controller.Proxies(func(p *apiproxy.Proxy) {
			if k.fault.Kind == fault.LoseStates {
				p.Expire(ofType(t))
			}
			p.Release()
		})
	})
	k.run.controller.Proxies(func(p *apiproxy.Proxy) { p.Hold(ofType(t)) })
}

// holding reports whether something is held back beyond the end of the current step.
func (k *knock) holding() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held != "" && k.held != k.run.current.get()
}

// holdsUntil reports whether something is held back until the step is at rest.
func (k *knock) holdsUntil(step string) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held == step
}

func (k *knock) downDuring(step string) bool {
	return k != nil && k.fault.Kind == fault.DownDuring && k.fault.Point.Step == step
}

// stepBegins applies the fault if it begins with the given step.
func (k *knock) stepBegins(step string) {
	if k == nil || k.fault.Point.Step != step || k.decides() {
		return
	}
	if begin := actions[k.fault.Kind].begin; begin != nil {
		k.markApplied(nil)
		begin(k)
	}
}

// dueAt reports whether the fault is to be applied once the step is at rest.
func (k *knock) dueAt(step string) bool {
	return k != nil && actions[k.fault.Kind].rest != nil && k.fault.Point.Step == step && !k.applied()
}

// strike applies a fault while the world is at rest.
func (k *knock) strike(ctx context.Context) error {
	k.markApplied(nil)
	if err := actions[k.fault.Kind].rest(ctx, k); err != nil {
		k.run.out.Applied = false
		k.run.out.NotApplied = short(err.Error())
		return errStop
	}
	return nil
}

// letGo releases everything that was held back until this step, and reports whether
// there was anything to release.
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
	for _, do := range release {
		do()
	}
	return true
}

// end ends an applied fault before healing begins: from now on, the controller meets only a
// server that works. It releases what the fault holds back until the end of the current
// step, and answers no further request, even if an error burst has answers left.
func (k *knock) end() {
	if !k.applied() {
		return
	}
	k.letGo(k.run.current.get())
	if k.matcher == nil {
		return
	}
	if left := k.matcher.End(); left > 0 {
		k.run.log.Record(trace.Entry{Fault: &trace.Fault{
			What: "ended", Text: fmt.Sprintf("healing begins; %d more of the requests would have failed", left),
		}})
	}
}

// keep registers a function that is called once the named step is at rest. All functions of
// a fault must name the same step.
func (k *knock) keep(until string, release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held, k.release = until, append(k.release, release)
}

// stepAfter returns the name of the next step, or name itself for the last step.
func (r *run) stepAfter(name string) string {
	for i := range r.scenario.Steps {
		if r.scenario.Steps[i].Name == name && i+1 < len(r.scenario.Steps) {
			return r.scenario.Steps[i+1].Name
		}
	}
	return name
}

// refuse ends the run, because a fault that has begun turns out to be impossible.
func (k *knock) refuse(why string) {
	k.mu.Lock()
	if k.refused == "" {
		k.refused = short(why)
	}
	k.mu.Unlock()
	k.run.controller.Fail(errStop)
}

// whyNotApplied explains why the fault could not be applied, or why the scenario ended
// before the fault was applied.
func (k *knock) whyNotApplied() string {
	if k == nil {
		return ""
	}
	k.mu.Lock()
	refused := k.refused
	k.mu.Unlock()
	if refused != "" || k.applied() {
		return refused
	}
	if k.fault.Point.Verb == "" {
		return fmt.Sprintf("the run ended before it reached the point of the fault (%s)", k.fault.Point)
	}
	return fmt.Sprintf("the controller did not send %s in this run", k.fault.Point)
}

// short truncates a text that may contain a complete object.
func short(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

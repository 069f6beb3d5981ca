package inject

import (
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// ofType matches targets of the same type as t.
func ofType(t trace.Target) func(trace.Target) bool {
	return func(other trace.Target) bool {
		return other.Group == t.Group && other.Resource == t.Resource
	}
}

// hold holds back watch events for objects of the same type as t. When the named step is at
// rest, the held events are sent, or the watch expires and the client lists again.
func (i *Injection) hold(t trace.Target, until string) {
	i.keep(until, func() {
		i.controller.Proxies(func(p *apiproxy.Proxy) {
			if i.fault.Kind == fault.LoseStates {
				p.Expire(ofType(t))
			}
			p.Release()
		})
	})
	i.controller.Proxies(func(p *apiproxy.Proxy) { p.Hold(ofType(t)) })
}

// keep registers a function that is called when the named step comes to rest. All functions of
// a fault must name the same step.
func (i *Injection) keep(until string, release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held, i.release = until, append(i.release, release)
}

// Holds reports whether the fault is holding something back.
func (i *Injection) Holds() bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held != ""
}

// HoldsUntilRest reports whether the fault holds something back until the current step is at
// rest.
func (i *Injection) HoldsUntilRest() bool { return i.Holds() && !i.HoldsLonger() }

// HoldsLonger reports whether the fault holds something back beyond the end of the current
// step.
func (i *Injection) HoldsLonger() bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.held != "" && i.held != i.step
}

// Release releases everything that was held back until this step, and reports whether
// there was anything to release.
func (i *Injection) Release(step string) bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	held, release := i.held, i.release
	if held == step {
		i.held, i.release = "", nil
	}
	i.mu.Unlock()
	if held != step || release == nil {
		return false
	}
	if !i.notesEnd() {
		i.config.Log.Record(trace.Entry{Fault: &trace.Fault{What: "ended"}})
	}
	for _, do := range release {
		do()
	}
	return true
}

// notesEnd reports whether the fault itself notes its end, because it may end before the step is at rest.
func (i *Injection) notesEnd() bool {
	k := i.fault.Kind
	return k.CutsOff() || k == fault.FailingStart || k == fault.WebhookDown
}

// End ends an applied fault before healing begins, so that the controller meets only a working
// server from then on. End releases what the fault holds back until the end of the current step,
// and answers no further request, even if an error burst has answers left.
func (i *Injection) End() {
	if !i.Applied() {
		return
	}
	i.Release(i.current())
	if again := i.again.Load(); again != nil {
		again.End()
	}
	if i.matcher == nil {
		return
	}
	if left := i.matcher.End(); left > 0 {
		i.config.Log.Record(trace.Entry{Fault: &trace.Fault{
			What: "ended", Text: fmt.Sprintf("healing begins; %d more of the requests would have failed", left),
		}})
	}
}

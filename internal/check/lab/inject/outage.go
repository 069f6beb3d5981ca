package inject

import (
	"context"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// An outage is a time in which no instance of the controller can use the API server: it cannot be reached,
// or it answers with errors.
//
//	begin ──▶ away ──lasts, or healing begins──▶ back
type outage struct {
	mu   sync.Mutex
	cut  map[*apiproxy.Proxy]bool
	back time.Time // when the server can be used again, or will be
	over bool
	// lasts is the intended duration.
	lasts time.Duration
}

// beginOutage cuts off all instances of the controller, including those that are started during the
// outage.
func beginOutage(i *Injection) { i.cutOff(fault.OutageLasts) }

// cutOff begins an outage in which the API server cannot be reached.
func (i *Injection) cutOff(lasts time.Duration) {
	o := i.away(lasts)
	i.controller.Prepare(o.disconnect)
	i.controller.Proxies(o.disconnect)
}

// away begins an outage, and ends it after the given time, or when the step is at rest.
func (i *Injection) away(lasts time.Duration) *outage {
	o := &outage{cut: map[*apiproxy.Proxy]bool{}, back: time.Now().Add(lasts), lasts: lasts}
	i.mu.Lock()
	i.outage = o
	i.mu.Unlock()
	timer := time.AfterFunc(lasts, func() { i.endOutage(o) })
	i.keep(i.fault.Point.Step, func() {
		timer.Stop()
		i.endOutage(o)
	})
	return o
}

func (o *outage) disconnect(p *apiproxy.Proxy) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over && !o.cut[p] {
		o.cut[p] = true
		p.Disconnect()
	}
}

// endOutage ends the outage, unless it is already over. An instance that cannot be reconnected shows
// nothing about the controller.
func (i *Injection) endOutage(o *outage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.over, o.back = true, time.Now()
	i.controller.Prepare(nil)
	i.refusing.Store(nil)
	i.config.Log.Record(trace.Entry{Fault: &trace.Fault{What: "ended", Text: "the API server can be used again"}})
	for p := range o.cut {
		if err := p.Reconnect(); err != nil {
			i.refuse(err.Error())
		}
	}
}

// offlineStart restarts the controller while no instance can reach the API server.
func (i *Injection) offlineStart(context.Context) error {
	i.controller.Kill() // so that only the new instance notices the outage
	i.cutOff(fault.BriefOutageLasts)
	i.controller.KillAndStart()
	return nil
}

// failingStart restarts the controller while the API server has no connection to etcd.
func (i *Injection) failingStart(context.Context) error {
	i.controller.Kill() // so that only the new instance notices it
	failing := func(*trace.Call) apiproxy.Action { return answerFor(fault.Error500) }
	i.refusing.Store(&refusal{covers: fault.NeedsStore, answer: failing})
	i.away(fault.BriefOutageLasts)
	i.controller.KillAndStart()
	return nil
}

// Away returns how long the API server cannot be used yet, or the time since it can be used again.
// Both are zero if there was no outage.
func (i *Injection) Away() (left, since time.Duration) {
	if i == nil {
		return 0, 0
	}
	i.mu.Lock()
	o := i.outage
	i.mu.Unlock()
	if o == nil {
		return 0, 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return 0, time.Since(o.back)
	}
	return max(time.Until(o.back), time.Millisecond), 0 // the timer may be late
}

// RetryDue returns how long clients may still pause before they repeat a request that an outage has
// prevented. A client that doubles its pauses, and adds up to the whole pause at random, waits at most for
// twice the duration of the outage.
func (i *Injection) RetryDue() time.Duration {
	left, since := i.Away()
	if left == 0 && since == 0 {
		return i.refusedRetryDue()
	}
	i.mu.Lock()
	lasts := i.outage.lasts
	i.mu.Unlock()
	return left + max(2*lasts+rest.RetryMargin-since, 0)
}

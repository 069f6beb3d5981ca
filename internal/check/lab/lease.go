package lab

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// leaseTimeout is how long another instance may take to become the leader: the
// default of a lease is 15 s.
const leaseTimeout = 25 * time.Second

// deaf is the decider of an instance that cannot renew its Lease: whatever it
// asks about leases is answered as by an API server that has no etcd.
type deaf struct {
	next apiproxy.Decider
	on   atomic.Bool
}

func (d *deaf) Decide(call *trace.Call) apiproxy.Action {
	if d.on.Load() && call.Target.Resource == "leases" {
		return answerFor("error-500")
	}
	if d.next == nil {
		return apiproxy.Action{}
	}
	return d.next.Decide(call)
}

// loseLease keeps the leader from renewing its Lease while all else works, until
// a second instance leads; then it touches what both reconcile.
func loseLease(ctx context.Context, k *knock) error {
	c := k.run.controller
	leader := c.instances()
	if len(leader) != 1 {
		return errors.New("the controller is not up")
	}
	before := k.run.holders()
	if len(before) == 0 {
		return errors.New("the controller holds no Lease")
	}
	if err := c.start(1); err != nil {
		return err
	}
	if _, err := k.run.rest(ctx, stepTimeout); err != nil {
		return err
	}
	leader[0].deaf.on.Store(true)
	deadline := time.After(leaseTimeout)
	for {
		next := k.run.lab.store.touched.next()
		if passed(before, k.run.holders()) {
			return k.run.poke(ctx)
		}
		select {
		case <-next:
		case <-deadline:
			return errors.New("no other instance took the Lease over in time")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// holders are the Leases of this run with who holds them.
func (r *run) holders() map[state.Ref]string {
	holders := map[state.Ref]string{}
	for ref, lease := range r.leases() {
		holders[ref] = lease.holder
	}
	return holders
}

// leases are those of this run that somebody holds.
func (r *run) leases() map[state.Ref]lease {
	held := map[state.Ref]lease{}
	baseline := r.lab.store.history().Baseline
	for ref, object := range r.lab.store.find(func(ref state.Ref, _ state.Object) bool { return ref.Kind == "Lease" }) {
		if _, old := baseline[ref]; old {
			continue // the plane's own
		}
		if l := readLease(object); l.holder != "" {
			held[ref] = l
		}
	}
	return held
}

// lease is what a Lease says.
type lease struct {
	holder            string
	acquired, renewed time.Time
	duration          time.Duration
}

const (
	// usualDuration is client-go's of a Lease, for one that says none.
	usualDuration = 15 * time.Second
	// longestTerm is how long a Lease is waited for at most: more than the 137 s that
	// OpenShift's operators take, less than those that elect nobody may say.
	longestTerm = 4 * time.Minute
)

func readLease(object state.Object) lease {
	spec, _ := object["spec"].(map[string]any)
	text := func(field string) string { s, _ := spec[field].(string); return s }
	at := func(field string) time.Time { t, _ := time.Parse(time.RFC3339Nano, text(field)); return t }
	l := lease{holder: text("holderIdentity"), acquired: at("acquireTime"), renewed: at("renewTime"), duration: usualDuration}
	if seconds, ok := spec["leaseDurationSeconds"].(int64); ok {
		l.duration = time.Duration(seconds) * time.Second
	}
	return l
}

// term is how long the Lease may be held by who is gone. client-go takes it when it
// has seen it unchanged for as long as it says, and asks now and then only: half as
// long again is enough for that.
func (l lease) term() time.Duration { return min(l.duration*3/2+upTimeout, longestTerm) }

// succession is how long the controller may still have to wait until it leads: one
// that is started anew finds the Lease of the one that was killed, and client-go
// takes it when it has seen it unchanged for as long as it says. It asks now and
// then only; half as long again is enough for that.
//
// What leads since then has begun then: a is told so.
func (r *run) succession(a *activity, now time.Time) (left time.Duration) {
	started := a.begun
	for _, l := range r.leases() {
		if l.acquired.After(a.begun) && l.acquired.Before(now) {
			a.begun = l.acquired
		}
		candidate := a.electing || now.Sub(started) < upTimeout
		if candidate && a.instances == 1 && !l.renewed.IsZero() && l.renewed.Before(started) {
			left = max(left, l.term()-now.Sub(started))
		}
	}
	return left
}

// handover is how long a step may take the longer as Leases have to run out in it.
func (r *run) handover() (longest time.Duration) {
	for _, l := range r.leases() {
		longest = max(longest, l.term())
	}
	return longest
}

// longestLease is of those that were held in a run.
func longestLease(out *evidence.Run) (longest time.Duration) {
	for _, c := range out.History.Changes {
		if _, old := out.History.Baseline[c.Ref]; old || c.Ref.Kind != "Lease" || c.After == nil {
			continue
		}
		if l := readLease(c.After); l.holder != "" {
			longest = max(longest, l.duration)
		}
	}
	return longest
}

func passed(before, now map[state.Ref]string) bool {
	for ref, holder := range before {
		if now[ref] != "" && now[ref] != holder {
			return true
		}
	}
	return false
}

package lab

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
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
	baseline := r.lab.store.history().Baseline
	for ref, object := range r.lab.store.find(func(ref state.Ref, _ state.Object) bool { return ref.Kind == "Lease" }) {
		if _, old := baseline[ref]; old {
			continue // the plane's own
		}
		holder, _, _ := unstructured.NestedString(object, "spec", "holderIdentity")
		if holder != "" {
			holders[ref] = holder
		}
	}
	return holders
}

func passed(before, now map[state.Ref]string) bool {
	for ref, holder := range before {
		if now[ref] != "" && now[ref] != holder {
			return true
		}
	}
	return false
}

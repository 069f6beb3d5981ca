package inject

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/election"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// leaseTimeout limits how long another instance may take to become the leader. The
// default duration of a Lease is 15 s.
const leaseTimeout = 25 * time.Second

// secondInstance starts a second instance, which waits for the Lease of the leader.
func (i *Injection) secondInstance(context.Context) (phase, error) {
	leader := i.controller.Instances()
	if len(leader) != 1 {
		return nil, errors.New("the controller is not running")
	}
	before := i.holders()
	if len(before) == 0 {
		return nil, errors.New("the controller holds no Lease")
	}
	if err := i.controller.Start(1); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (phase, error) { return nil, i.loseLease(ctx, leader[0], before) }, nil
}

// loseLease prevents the leader from renewing its Lease until a second instance leads and the world
// is at rest, while all other requests work. After the leader has changed, loseLease writes the
// objects that both instances reconcile.
func (i *Injection) loseLease(ctx context.Context, leader *instance.Instance, before map[state.Ref]election.Lease) error {
	leader.Override(deafTo(before))
	i.keep(i.fault.Point.Step, func() { leader.Override(nil) })
	deadline := time.After(leaseTimeout)
	for {
		next := i.config.Store.Touched()
		if takenOver(before, i.holders()) {
			return i.config.Cluster.Each(ctx, i.primary(), interference.Touch)
		}
		select {
		case <-next:
		case <-deadline:
			return errors.New("no other instance took over the Lease in time")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// deafTo makes an instance's requests for Leases, and for the other objects that record an
// election, fail as if the API server had lost etcd.
func deafTo(held map[state.Ref]election.Lease) instance.Override {
	return func(call *trace.Call) (apiproxy.Action, bool) {
		if !request.IsLease(call.Target) && !records(held, call.Target) {
			return apiproxy.Action{}, false
		}
		return answerFor(fault.Error500), true
	}
}

// records reports whether a request is about an object, other than a Lease, that records an
// election.
func records(held map[state.Ref]election.Lease, t trace.Target) bool {
	for ref := range held {
		if ref.Group == t.Group && t.Name == ref.Name && t.Namespace == ref.Namespace && strings.HasPrefix(t.Resource, strings.ToLower(ref.Kind)) {
			return true
		}
	}
	return false
}

// holders returns the Leases of this run that are held.
func (i *Injection) holders() map[state.Ref]election.Lease {
	return election.Held(i.config.Store.Objects(), i.config.Store.History().Baseline)
}

// primary returns the objects of the kinds that the controller reconciles.
func (i *Injection) primary() map[state.Ref]state.Object {
	found := map[state.Ref]state.Object{}
	for ref, object := range i.config.Store.Objects() {
		if slices.Contains(i.config.Primary, ref.String()) {
			found[ref] = object
		}
	}
	return found
}

// takenOver reports whether a Lease has a new holder.
func takenOver(before, now map[state.Ref]election.Lease) bool {
	for ref, lease := range before {
		if holder := now[ref].Holder; holder != "" && holder != lease.Holder {
			return true
		}
	}
	return false
}

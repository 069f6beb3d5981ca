package lab

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// leaseTimeout limits how long another instance may take to become the leader. The
// default duration of a Lease is 15 s.
const leaseTimeout = 25 * time.Second

// deaf answers every request of an instance for Leases like an API server that has lost etcd.
func deaf(call *trace.Call) (apiproxy.Action, bool) {
	if !request.IsLease(call.Target) {
		return apiproxy.Action{}, false
	}
	return answerFor(fault.Error500), true
}

// loseLease prevents the leader from renewing its Lease until a second instance leads and
// the world is at rest, while all other requests work. After the change of the leader, it
// writes the objects that both instances reconcile.
func loseLease(ctx context.Context, k *knock) error {
	c := k.run.controller
	leader := c.Instances()
	if len(leader) != 1 {
		return errors.New("the controller is not running")
	}
	before := k.run.holders()
	if len(before) == 0 {
		return errors.New("the controller holds no Lease")
	}
	if err := c.Start(1); err != nil {
		return err
	}
	if _, err := k.run.rest(ctx, stepTimeout); err != nil {
		return err
	}
	leader[0].Override(deaf)
	k.keep(k.fault.Point.Step, func() { leader[0].Override(nil) })
	deadline := time.After(leaseTimeout)
	for {
		next := k.run.lab.store.touched.Next()
		if takenOver(before, k.run.holders()) {
			return k.run.nudge(ctx)
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

// holders returns the holder of each Lease of this run.
func (r *run) holders() map[state.Ref]string {
	holders := map[state.Ref]string{}
	for ref, lease := range r.leases() {
		holders[ref] = lease.holder
	}
	return holders
}

// leases returns the Leases of this run that are held.
func (r *run) leases() map[state.Ref]lease {
	held := map[state.Ref]lease{}
	baseline := r.lab.store.history().Baseline
	for ref, object := range r.lab.store.find(isElection) {
		if _, old := baseline[ref]; old {
			continue // it belongs to the plane
		}
		if l := readLease(ref, object); l.holder != "" {
			held[ref] = l
		}
	}
	return held
}

// isElection reports whether an object is a Lease, or the record of an election that
// client-go kept before Leases existed.
func isElection(ref state.Ref, object state.Object) bool {
	_, ok := request.LeaseSpec(ref.GroupKind, object)
	return ok
}

// lease is the content of a Lease.
type lease struct {
	holder            string
	acquired, renewed time.Time
	duration          time.Duration
}

const (
	// defaultDuration applies to a Lease without a duration, as in client-go.
	defaultDuration = 15 * time.Second
	// longestTerm limits the wait until a Lease expires. It exceeds the Lease duration of
	// OpenShift's operators, 137 s. The limit is needed because a Lease that is not for
	// leader election may last longer.
	longestTerm = 4 * time.Minute
)

func readLease(ref state.Ref, object state.Object) lease {
	spec, _ := request.LeaseSpec(ref.GroupKind, object)
	text := func(field string) string { s, _ := spec[field].(string); return s }
	at := func(field string) time.Time { t, _ := time.Parse(time.RFC3339Nano, text(field)); return t }
	l := lease{holder: text("holderIdentity"), acquired: at("acquireTime"), renewed: at("renewTime"), duration: defaultDuration}
	if seconds, ok := spec["leaseDurationSeconds"].(int64); ok {
		l.duration = time.Duration(seconds) * time.Second
	}
	return l
}

// term returns how long a Lease may stay with a holder that is gone. client-go takes over a
// Lease that has not changed for its duration. It checks the Lease only at intervals, so
// term adds half of the duration.
func (l lease) term() time.Duration { return min(l.duration*3/2+rest.UpTimeout, longestTerm) }

// succession returns how long a restarted controller may still have to wait until the Lease
// of the previous holder expires.
//
// If the controller has become the leader since the restart, succession sets a.Begun to
// the time when it became the leader.
func (r *run) succession(a *instance.Activity, now time.Time) (left time.Duration) {
	started := a.Begun
	for _, l := range r.leases() {
		if l.acquired.After(a.Begun) && l.acquired.Before(now) {
			a.Begun = l.acquired
		}
		candidate := a.Electing || now.Sub(started) < rest.UpTimeout
		if candidate && a.Instances == 1 && !l.renewed.IsZero() && l.renewed.Before(started) {
			left = max(left, l.term()-now.Sub(started))
		}
	}
	return left
}

// handover returns the extra time that a step gets for Leases to expire.
func (r *run) handover() (longest time.Duration) {
	for _, l := range r.leases() {
		longest = max(longest, l.term())
	}
	return longest
}

// longestLease returns the longest duration of a Lease that was held in a run.
func longestLease(out *evidence.Run) (longest time.Duration) {
	for _, c := range out.History.Changes {
		if _, old := out.History.Baseline[c.Ref]; old || c.After == nil || !isElection(c.Ref, c.After) {
			continue
		}
		if l := readLease(c.Ref, c.After); l.holder != "" {
			longest = max(longest, l.duration)
		}
	}
	return longest
}

// waitsForLease reports whether a restarted controller may have to wait for a Lease, because
// the Lease or record is not one of the known elections, which are released after a kill.
func waitsForLease(out *evidence.Run, elections []string) bool {
	return slices.ContainsFunc(out.History.Changes, func(c state.Change) bool {
		if _, old := out.History.Baseline[c.Ref]; old || c.After == nil || !isElection(c.Ref, c.After) {
			return false
		}
		released := request.IsLeaseKind(c.Ref.GroupKind) && slices.Contains(elections, leaseName(c.Ref))
		return !released && readLease(c.Ref, c.After).holder != ""
	})
}

// refusedLease reports whether the controller tried to take a Lease in a run, but all of its
// requests failed.
func refusedLease(out *evidence.Run) (refused bool) {
	for _, e := range out.Entries {
		if e.Call == nil || !request.IsLease(e.Call.Target) {
			continue
		}
		if e.Call.Code < 300 && e.Call.Verb != "get" {
			return false
		}
		refused = refused || e.Call.Code == http.StatusForbidden
	}
	return refused
}

// takenOver reports whether a Lease has a new holder.
func takenOver(before, now map[state.Ref]string) bool {
	for ref, holder := range before {
		if now[ref] != "" && now[ref] != holder {
			return true
		}
	}
	return false
}

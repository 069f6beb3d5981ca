package lab

import (
	"context"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/lab/election"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// leases returns the Leases of this run that are held.
func (r *run) leases() map[state.Ref]election.Lease {
	return election.Held(r.lab.store.find(election.Is), r.lab.store.History().Baseline)
}

// succession returns how long a restarted controller may still have to wait until the Lease
// of the previous holder expires, or until it tries again to get one.
//
// If the controller has become the leader since the restart, succession sets a.Begun to
// the time when it became the leader.
func (r *run) succession(a *instance.Activity, now time.Time) (left time.Duration) {
	started := a.Begun
	_, back := r.injection.Away()
	left = r.nextAttempt(a, back)
	for _, l := range r.leases() {
		if l.Acquired.After(a.Begun) && l.Acquired.Before(now) {
			a.Begun = l.Acquired
		}
		candidate := a.Electing || now.Sub(started) < rest.UpTimeout
		if candidate && a.Instances == 1 && !l.Renewed.IsZero() && l.Renewed.Before(started) {
			left = max(left, l.Term()-now.Sub(started))
		}
	}
	return left
}

// nextAttempt returns how long a controller may still pause until it tries again to become the leader, if it
// could not do so during an outage that is over since the given time. client-go's retry period is shorter
// than the duration of the Lease by a factor of at least 1.2, and each pause is up to 2.2 times as long.
func (r *run) nextAttempt(a *instance.Activity, back time.Duration) time.Duration {
	waits := a.Instances == 1 && (a.Electing || a.Unheard > 0)
	if back == 0 || !waits || r.lesson == nil || len(r.lesson.Elections) == 0 || len(r.leases()) > 0 {
		return 0
	}
	return max(2*r.lesson.Lease-back, 0)
}

// handover returns the extra time that a step gets for Leases to expire.
func (r *run) handover() (longest time.Duration) {
	for _, l := range r.leases() {
		longest = max(longest, l.Term())
	}
	return longest
}

// release returns a function that releases the known elections while no instance is up.
func (l *Lab) release(ctx context.Context, log *trace.Log) func() {
	return func() {
		for _, note := range election.Release(ctx, l.client, l.elections.Names()) {
			log.Record(trace.Entry{Fault: &trace.Fault{What: "lease", Text: note}})
		}
	}
}

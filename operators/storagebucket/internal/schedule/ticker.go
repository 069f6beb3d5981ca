package schedule

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// resolution is the minimum time between two checks of the plan, so that very
// many objects do not cause very many checks.
const resolution = 20 * time.Millisecond

// Announcement names an object that is due. It is a hint: the receiver asks
// the Plan again.
type Announcement struct {
	// Object is the name of the object.
	Object types.NamespacedName
	// Urgent reports whether somebody is waiting for the result.
	Urgent bool
}

// Event is an Announcement in the form that controller-runtime's sources expect.
type Event = event.TypedGenericEvent[Announcement]

// Ticker sends an Event for every object that becomes due. It is a Runnable
// for a controller-runtime manager.
type Ticker struct {
	// Plan decides which objects are due.
	Plan *Plan
	// Clock is the clock to wait on: the one that the Plan was created with.
	Clock clock.Clock
	// Events receives one Event for each object and slot. It must be drained
	// until the context of Start ends.
	Events chan<- Event
}

var (
	_ manager.Runnable               = (*Ticker)(nil)
	_ manager.LeaderElectionRunnable = (*Ticker)(nil)
)

// NeedLeaderElection limits the ticker to the leader. The controllers of other
// managers do not run, so nothing would drain the channel, and only the leader
// may probe.
func (*Ticker) NeedLeaderElection() bool { return true }

// Start runs until the context ends. Every send also waits for the end of the
// context, because the receiving source stops draining the channel at the same
// moment.
func (t *Ticker) Start(ctx context.Context) error {
	for {
		due, wait := t.Plan.announce()
		for _, announcement := range due {
			select {
			case t.Events <- Event{Object: announcement}:
			case <-ctx.Done():
				return nil
			}
		}
		if !t.sleep(ctx, wait) {
			return nil
		}
	}
}

// sleep waits until the time has passed or the plan has changed; it returns
// false if the context ended. With a negative wait, there is no time limit.
func (t *Ticker) sleep(ctx context.Context, wait time.Duration) bool {
	var elapsed <-chan time.Time
	if wait >= 0 {
		timer := t.Clock.NewTimer(max(wait, resolution))
		defer timer.Stop()
		elapsed = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-t.Plan.changed:
		return true
	case <-elapsed:
		return true
	}
}

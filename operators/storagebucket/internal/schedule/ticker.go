package schedule

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// resolution is the minimum time between two checks of the plan, so that the number of
// checks does not grow with the number of objects.
const resolution = 20 * time.Millisecond

// Announcement names an object that is due. An Announcement is only a hint: the receiver must call
// Plan.Due to find out whether the object is still due.
type Announcement struct {
	// Object is the name of the object.
	Object types.NamespacedName
	// Urgent reports whether a poke is the cause of the announcement: a user may be waiting
	// for the result.
	Urgent bool
}

// Event is an Announcement in the form that controller-runtime's sources expect.
type Event = event.TypedGenericEvent[Announcement]

// Ticker sends an Event for every object that becomes due. It is a Runnable
// for a controller-runtime manager.
type Ticker struct {
	// Plan decides which objects are due.
	Plan *Plan
	// Clock is the clock that the Plan was created with. The ticker waits on it.
	Clock clock.Clock
	// Events receives one Event for each object and slot. Events must be drained until the context
	// of Start ends.
	Events chan<- Event
}

var (
	_ manager.Runnable               = (*Ticker)(nil)
	_ manager.LeaderElectionRunnable = (*Ticker)(nil)
)

// NeedLeaderElection makes the ticker run only in the leader. Only the leader may
// probe. In other managers, the controllers do not run, so nothing would drain the
// channel.
func (*Ticker) NeedLeaderElection() bool { return true }

// Start runs until the context ends. Every send must also end with the context, because
// the receiving source stops draining the channel at the same moment.
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

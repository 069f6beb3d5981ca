package schedule

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// resolution is the least time between two looks at the plan, so that very
// many objects do not mean very many looks.
const resolution = 20 * time.Millisecond

// Announcement names an object that is due. It is a hint: the
// receiver asks the Plan again.
type Announcement struct {
	// Object is the name.
	Object types.NamespacedName
	// Urgent is set if somebody is waiting for the result.
	Urgent bool
}

// Event is an Announcement as controller-runtime's sources take it.
type Event = event.TypedGenericEvent[Announcement]

// Ticker sends an Event for every object that becomes due. It is a Runnable
// for a controller-runtime manager.
type Ticker struct {
	// Plan decides which objects are due.
	Plan *Plan
	// Clock to wait on; the one the Plan was made with.
	Clock clock.Clock
	// Events receives one Event for each object and slot. It must be drained
	// until the context of Start ends.
	Events chan<- Event
}

var (
	_ manager.Runnable               = (*Ticker)(nil)
	_ manager.LeaderElectionRunnable = (*Ticker)(nil)
)

// NeedLeaderElection keeps the ticker to the leader: the others' controllers
// do not run, so nothing would drain the channel, and only the leader may probe.
func (*Ticker) NeedLeaderElection() bool { return true }

// Start runs until the context ends. Every send gives way to that, because the
// receiving source stops draining the channel at the same moment.
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

// sleep waits for the time to pass or the plan to change; it returns false
// when the context ended. A negative wait has no end of its own.
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

package schedule

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// entry is a Plan's record of one object.
type entry struct {
	key types.NamespacedName
	// uid and interval are empty for an object that was poked before it was
	// seen.
	uid      types.UID
	interval time.Duration
	// inputs are the inputs when the object was last seen.
	inputs string

	// next is the time at which the object becomes due, and cause the reason.
	next  time.Time
	cause Cause
	// since is when it should have been probed; Lag counts from there.
	since time.Time
	// failures in a row.
	failures int
	parked   bool

	// poked is when a poke takes effect that no look at the object has taken
	// note of; zero when there is none. A probe that ends does not touch it: the
	// poke may have come after the probe began.
	poked time.Time
	// lastPoke is when the last poke took, or takes, effect.
	lastPoke time.Time

	// announce is when somebody has to be told, and urgent whether that is
	// because of a poke. Once told it moves on to the next slot, so that an
	// object is announced once a slot and not without end while its probe is
	// under way.
	announce time.Time
	urgent   bool
	// index in the agenda; notListed when it is not to be announced.
	index int
}

// dueNoLaterThan brings the object forward.
func (e *entry) dueNoLaterThan(at time.Time, cause Cause) {
	e.next = earlier(e.next, at)
	e.since = earlier(e.since, at)
	e.cause = heavier(e.cause, cause)
}

// reannounce is when to tell again, after it was done now; zero for never.
func (e *entry) reannounce(now time.Time) time.Time {
	if e.urgent && e.lastPoke.After(now) {
		return e.lastPoke
	}
	if e.parked || e.interval == 0 {
		return time.Time{}
	}
	return now.Add(untilSlot(now, e.uid, e.interval))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// notListed is the index of an entry that is in no agenda.
const notListed = -1

// agenda is a heap of entries, the one to be announced next on top.
type agenda []*entry

// set lists the entry, or moves it, to be announced at that time.
func (a *agenda) set(e *entry, at time.Time) {
	e.announce = at
	if e.index == notListed {
		heap.Push(a, e)
		return
	}
	heap.Fix(a, e.index)
}

// drop takes the entry out.
func (a *agenda) drop(e *entry) {
	if e.index != notListed {
		heap.Remove(a, e.index)
	}
}

// heap.Interface, not to be called directly.

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].announce.Before(a[j].announce) }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.index = len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	e.index = notListed
	return e
}

package schedule

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// entry is a Plan's record of one object.
type entry struct {
	key types.NamespacedName
	// uid and interval are empty for an object that was poked before the plan
	// first saw it.
	uid      types.UID
	interval time.Duration
	// inputs are the inputs with which the object was last seen.
	inputs string

	// next is the time at which the object becomes due; cause is the reason.
	next  time.Time
	cause Cause
	// since is the time at which the object should have been probed; Lag counts from this
	// time.
	since time.Time
	// failures counts the failures in a row.
	failures int
	parked   bool

	// poked is the time at which the earliest pending poke takes effect; zero if no
	// poke is pending. A poke is pending until Due has taken it into account. The end
	// of a probe does not clear poked, because the poke may have come after the probe
	// started.
	poked time.Time
	// lastPoke is the time at which the last poke took, or takes, effect.
	lastPoke time.Time

	// announce is the time of the next announcement. urgent reports whether a poke is
	// the cause of that announcement. After an announcement, announce moves to the next
	// slot, so that an object is announced once per slot and not repeatedly while its
	// probe is in progress.
	announce time.Time
	urgent   bool
	// index is the position in the agenda; notListed if the entry is not in it.
	index int
}

// dueNoLaterThan makes the object due at the given time, unless it is due earlier anyway.
func (e *entry) dueNoLaterThan(at time.Time, cause Cause) {
	e.next = earlier(e.next, at)
	e.since = earlier(e.since, at)
	e.cause = heavier(e.cause, cause)
}

// reannounce returns when an object that is announced now must be announced again; zero
// means never.
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

// notListed is the index of an entry that is not in the agenda.
const notListed = -1

// agenda is a heap of entries, with the next one to be announced on top.
type agenda []*entry

// set adds the entry, or moves it, so that it is announced at the given time.
func (a *agenda) set(e *entry, at time.Time) {
	e.announce = at
	if e.index == notListed {
		heap.Push(a, e)
		return
	}
	heap.Fix(a, e.index)
}

// drop removes the entry.
func (a *agenda) drop(e *entry) {
	if e.index != notListed {
		heap.Remove(a, e.index)
	}
}

// The methods below implement heap.Interface, and must not be called directly.

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

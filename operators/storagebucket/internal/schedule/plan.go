// Package schedule determines when each object is probed next, and wakes the
// controller at that time.
//
// Every object has its own fixed slots on the wall clock, one per interval. The offset of
// the slots in the interval is derived from the object's UID, so that objects with the same
// interval are spread over the interval, and stay spread when the controller restarts.
//
//	first seen with no result;
//	inputs changed, unless parked;
//	poked
//	 │
//	 ▼
//	due ─┬─ Probed ───▶ waiting ────── its slot comes ──▶ due
//	     ├─ Postpone ─▶ put off ────── the wait is over ─▶ due
//	     ├─ Backoff ──▶ backing off ── the wait is over ─▶ due
//	     └─ Park ─────▶ parked ─────── Due asks: it wakes ▶ waiting
//
// Park and Forget are possible in every state. An object that wakes becomes due within
// 30 seconds, at a time derived from its UID, so that objects that wake together are
// spread.
//
// A Plan exists only in memory. Data that must survive a restart is in the status of the objects;
// everything else is computed again from the UID and the clock.
package schedule

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// mergePokes is the minimum time between two probes that are caused by pokes of the
	// same object: a burst of notifications causes one probe per second.
	mergePokes = time.Second

	// firstBackoff and maxBackoff limit the wait after failures.
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
)

// Cause is the reason why an object is due; empty if the object is not due.
type Cause string

// These are the causes: if several apply to an object, Due returns the cause that comes
// last in this list.
const (
	// Slot means that one of the object's own slots has begun.
	Slot Cause = "Slot"
	// Changed means that there is no result for the object's current inputs.
	Changed Cause = "Changed"
	// Poked means that a probe was requested.
	Poked Cause = "Poked"
)

// weight orders the causes.
var weight = map[Cause]int{Slot: 1, Changed: 2, Poked: 3}

// heavier returns the cause with the higher weight.
func heavier(a, b Cause) Cause {
	if weight[a] > weight[b] {
		return a
	}
	return b
}

// Turn is the result of Due.
type Turn struct {
	// Cause is the reason why the object is due; empty if it is not due.
	Cause Cause
	// Lag is the time for which the object has been due.
	Lag time.Duration
}

// Subject is an object as the Plan sees it.
type Subject struct {
	// Key names the object.
	Key types.NamespacedName
	// UID determines the object's slots (see Phase), and distinguishes the object from
	// another object of the same name. It is not empty.
	UID types.UID
	// Interval is the time between two probes. It is more than zero.
	Interval time.Duration
	// Inputs is a fingerprint of everything that the result of a probe depends
	// on. When it changes, the last result becomes invalid.
	Inputs string
	// Fresh reports whether the object's status already holds a result for its current spec. Fresh
	// matters only when the plan first sees the object: after that, the plan is more recent than a
	// status read from a cache.
	Fresh bool
	// LastProbe is the time of the last recorded probe; zero if it is not
	// known.
	LastProbe time.Time
	// Heartbeat is the maximum time by which LastProbe may be older than the actual last
	// probe, because not every probe is written to the status.
	Heartbeat time.Duration
}

// Plan holds the next probe time of every object. It is safe for concurrent
// use.
type Plan struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	agenda  agenda

	// changed receives an element whenever the ticker may have to wake up earlier.
	changed chan struct{}
}

// NewPlan returns an empty plan.
func NewPlan(c clock.PassiveClock) *Plan {
	return &Plan{
		clock:   c,
		entries: map[types.NamespacedName]*entry{},
		changed: make(chan struct{}, 1),
	}
}

// Due reports whether the object must be probed now. An unknown object is added to the
// plan. An object that is due remains due until Probed, Postpone, Backoff or Park is
// called. A parked object wakes: it becomes due within 30 seconds, or within its interval
// if that is shorter, at a time derived from its UID. A parked object is due now only if it
// was poked, or its inputs have changed.
func (p *Plan) Due(s Subject) Turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	e := p.look(s, now)
	if e.parked {
		p.wake(e, now)
	}
	if !e.poked.IsZero() && (!now.Before(e.poked) || !now.Before(e.next)) {
		e.dueNoLaterThan(e.poked, Poked)
		e.poked = time.Time{}
	}
	if now.Before(e.next) {
		return Turn{}
	}
	return Turn{Cause: e.cause, Lag: max(0, now.Sub(e.since))}
}

// Probed records that the object has just been probed and that the result was kept. The
// object becomes due at its next slot, or, if retryAfter is not zero, at its first slot
// after that time.
func (p *Plan) Probed(s Subject, retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	e := p.entryOf(s, now)
	e.inputs, e.interval = s.Inputs, s.Interval
	e.failures, e.parked = 0, false
	e.next = now.Add(retryAfter)
	e.next = e.next.Add(untilSlot(e.next, s.UID, s.Interval))
	e.cause, e.since = Slot, e.next
	p.list(e)
}

// Postpone records that the object could not be probed yet. After the wait, the object is
// announced again and is due for the same cause. The lag of the object includes the wait.
func (p *Plan) Postpone(s Subject, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	e := p.entryOf(s, now)
	e.parked = false
	if !e.poked.IsZero() && !now.Before(e.poked) {
		// The object is due because of this poke, which is not announced again.
		e.dueNoLaterThan(e.poked, Poked)
		e.poked = time.Time{}
	}
	e.since = earlier(e.since, now)
	e.next = now.Add(max(wait, resolution))
	p.list(e)
}

// Backoff records that work on the object failed. The object becomes due again, for the
// same cause, after a wait. The wait starts at 1 second and doubles with each failure, up
// to 5 minutes or the interval, whichever is shorter, but it is never shorter than floor.
// Changed inputs and pokes end the wait.
func (p *Plan) Backoff(s Subject, floor time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	e := p.entryOf(s, now)
	e.inputs, e.interval = s.Inputs, s.Interval
	e.parked = false
	e.failures++
	e.next = now.Add(max(backoff(e.failures, s.Interval), floor))
	e.since = e.next
	p.list(e)
}

// Park stops the announcements of the object until it wakes (see Due) or is poked. The
// cause is kept.
func (p *Plan) Park(s Subject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entryOf(s, p.clock.Now())
	e.parked = true
	if !e.urgent { // a poke that came meanwhile is still announced
		p.agenda.drop(e)
	}
}

// Poke makes the object due now, even if it is not known yet. Pokes of one object that
// are less than a second apart are merged: the first is announced immediately, and the
// others are announced together one second later. If the object turns out not to exist,
// the caller must call Forget.
func (p *Plan) Poke(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	e, known := p.entries[key]
	if !known {
		e = &entry{key: key, index: notListed}
		p.entries[key] = e
	}
	if !e.lastPoke.After(now) {
		// A pending poke that has not taken effect yet also covers this new poke.
		e.lastPoke = later(now, e.lastPoke.Add(mergePokes))
	}
	if e.poked.IsZero() {
		e.poked = e.lastPoke
	}
	e.urgent = true
	at := e.lastPoke
	if e.index != notListed {
		at = earlier(at, e.announce)
	}
	p.setAnnounce(e, at)
}

// Forget drops an object.
func (p *Plan) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, known := p.entries[key]; known {
		p.agenda.drop(e)
		delete(p.entries, key)
	}
}

// Len returns the number of objects in the plan.
func (p *Plan) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.entries)
}

// announce returns the due objects that have not been announced yet, urgent ones first,
// and the time until the next announcement. A negative wait means that no announcement
// is planned.
func (p *Plan) announce() (due []Announcement, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	var slots []Announcement
	for len(p.agenda) > 0 && !now.Before(p.agenda[0].announce) {
		e := p.agenda[0]
		if e.urgent && !now.Before(e.lastPoke) {
			due = append(due, Announcement{Object: e.key, Urgent: true})
			e.urgent = false
		} else {
			slots = append(slots, Announcement{Object: e.key})
		}
		if again := e.reannounce(now); again.IsZero() {
			p.agenda.drop(e)
		} else {
			p.agenda.set(e, again)
		}
	}
	due = append(due, slots...)
	if len(p.agenda) == 0 {
		return due, -1
	}
	return due, p.agenda[0].announce.Sub(now)
}

// look finds the object's entry and compares it with the object's current state. look and
// all functions below must be called with p.mu held.
func (p *Plan) look(s Subject, now time.Time) *entry {
	e := p.entryOf(s, now)
	if e.inputs != s.Inputs {
		e.inputs = s.Inputs
		e.failures = 0
		if e.parked { // the problem was fixed, and the lag starts only now
			e.parked, e.since = false, now
		}
		e.dueNoLaterThan(now, Changed)
	}
	if e.interval != s.Interval {
		e.interval = s.Interval
		if e.cause == Slot && e.failures == 0 && !e.parked && now.Before(e.next) {
			e.dueNoLaterThan(now.Add(untilSlot(now, s.UID, s.Interval)), Slot)
			p.list(e)
		}
	}
	return e
}

// entryOf finds the object's entry, or creates one.
func (p *Plan) entryOf(s Subject, now time.Time) *entry {
	old, known := p.entries[s.Key]
	if known && old.uid == s.UID {
		return old
	}
	e := &entry{key: s.Key, uid: s.UID, interval: s.Interval, inputs: s.Inputs, index: notListed}
	e.next, e.cause = firstProbe(s, now)
	e.since = e.next
	if known { // poked before it was first seen, or another object of the same name
		e.poked, e.lastPoke, e.urgent = old.poked, old.lastPoke, old.urgent
		p.agenda.drop(old)
	}
	p.entries[s.Key] = e
	p.list(e)
	return e
}

// wake ends the parking of an object.
func (p *Plan) wake(e *entry, now time.Time) {
	e.parked = false
	e.failures = 0
	e.next = now.Add(spread(now, e.uid, e.interval))
	e.since = e.next
	if !e.poked.IsZero() {
		e.poked = later(e.poked, now) // the lag does not include the time while the object was parked
	}
	p.list(e)
}

// list sets the announcement of an object whose due time has just been set.
func (p *Plan) list(e *entry) {
	at := e.next
	e.urgent = e.cause == Poked
	if !e.poked.IsZero() {
		at = earlier(at, e.poked)
		e.urgent = true
	}
	p.setAnnounce(e, at)
}

func (p *Plan) setAnnounce(e *entry, at time.Time) {
	p.agenda.set(e, at)
	if e.index != 0 {
		return // another object is announced first: the ticker wakes up at the same time as before
	}
	select {
	case p.changed <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// firstProbe returns the due time of an object that is new to this process. An object
// without a result is due now. An object with a result is due at its next slot, or
// within catchUp if it has missed a slot.
func firstProbe(s Subject, now time.Time) (time.Time, Cause) {
	if !s.Fresh {
		return now, Changed
	}
	if missed := now.Sub(s.LastProbe) > s.Interval+s.Heartbeat; missed {
		return now.Add(spread(now, s.UID, s.Interval)), Slot
	}
	return now.Add(untilSlot(now, s.UID, s.Interval)), Slot
}

// backoff returns the wait after the given number of failures in a row.
func backoff(failures int, interval time.Duration) time.Duration {
	wait, limit := firstBackoff, min(interval, maxBackoff)
	for ; failures > 1 && wait < limit; failures-- {
		wait *= 2
	}
	return min(wait, limit)
}

// Package schedule decides when each object is probed next, and wakes the
// controller when that time has come.
//
// Every object has its own fixed slots on the wall clock, one an interval, at
// an offset taken from its UID. So objects with the same interval are spread
// over it, and stay spread when the controller restarts.
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
// Park and Forget are possible in every state. An object that wakes is due after
// a time of its own within 30 seconds, so that those that wake together are
// spread.
//
// A Plan lives in memory only. What must survive a restart is in the objects'
// status; everything else is worked out again from the UID and the clock.
package schedule

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// mergePokes is the least time between two probes of an object because of
	// pokes: a burst of notifications means one probe a second.
	mergePokes = time.Second

	// firstBackoff and maxBackoff bound the wait after failures.
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
)

// Cause is why an object is due; empty when it is not.
type Cause string

// Causes. Where several apply the last one of this list is given.
const (
	// Slot means that the object's own time came.
	Slot Cause = "Slot"
	// Changed means that the last result is worth nothing: there is none for
	// the present inputs.
	Changed Cause = "Changed"
	// Poked means that somebody asked.
	Poked Cause = "Poked"
)

// weight orders the causes.
var weight = map[Cause]int{Slot: 1, Changed: 2, Poked: 3}

// heavier is the one of two causes that counts.
func heavier(a, b Cause) Cause {
	if weight[a] > weight[b] {
		return a
	}
	return b
}

// Turn is the answer to whether an object is due.
type Turn struct {
	// Cause is empty when it is not.
	Cause Cause
	// Lag is the time for which it has been due.
	Lag time.Duration
}

// Subject is an object as a Plan sees it.
type Subject struct {
	// Key names the object.
	Key types.NamespacedName
	// UID sets the object's phase, and tells it from a namesake; not empty.
	UID types.UID
	// Interval between two probes; more than zero.
	Interval time.Duration
	// Inputs is a fingerprint of all that a probe's result depends on. When it
	// changes the last result is worth nothing.
	Inputs string
	// Fresh is set if the object's status already holds a result for its current
	// spec. It counts only the first time the object is seen: after
	// that the plan knows better than a status read from a cache.
	Fresh bool
	// LastProbe is the time of the last probe that was written down; zero when
	// it is not known.
	LastProbe time.Time
	// Heartbeat is the time by which LastProbe may be older than the last probe,
	// because not every probe is written to the status.
	Heartbeat time.Duration
}

// Plan holds the next probe time of every object. It is safe for concurrent
// use.
type Plan struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	agenda  agenda

	// changed has an element whenever the time to wake up may have moved
	// closer.
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

// Due reports whether the object has to be probed now, and adds it to the plan
// when it was not known. It stays due until Probed, Postpone, Backoff or Park. A
// parked object wakes: it is due after a time of its own within 30 seconds, or
// within its interval where that is shorter, and now only when it was poked.
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

// Probed notes that the object was probed just now, and that the result was
// kept. Its next turn is its next slot, or the first slot after retryAfter.
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

// Postpone notes that there was no room for the probe. The object is asked
// about again after the wait, is still due for the same cause, and its lag
// grows.
func (p *Plan) Postpone(s Subject, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	e := p.entryOf(s, now)
	e.parked = false
	if !e.poked.IsZero() && !now.Before(e.poked) {
		// It is due for the poke from now on, and not announced for it again.
		e.dueNoLaterThan(e.poked, Poked)
		e.poked = time.Time{}
	}
	e.since = earlier(e.since, now)
	e.next = now.Add(max(wait, resolution))
	p.list(e)
}

// Backoff notes that work on the object failed. It is due again, for the same
// cause, after a wait that doubles from 1 second to 5 minutes, but is not longer
// than the interval and not shorter than floor. Changed inputs and pokes do not
// wait.
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

// Park takes the object out of the plan's announcements until it wakes (see
// Due) or is poked. What it was due for is kept.
func (p *Plan) Park(s Subject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entryOf(s, p.clock.Now())
	e.parked = true
	if !e.urgent { // a poke that came meanwhile is announced nevertheless
		p.agenda.drop(e)
	}
}

// Poke makes the object due now, also when it is not known yet. Pokes of one
// object that are less than a second apart are merged: the first is announced
// at once, the others once, a second after it. An object that does not exist
// has to be forgotten again.
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
		// One that lies ahead serves this poke as well.
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

// Len is the number of objects in the plan.
func (p *Plan) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.entries)
}

// announce returns the objects that became due and were not announced yet, the
// urgent ones first, and how long to wait for the next one; a negative wait
// means there is none.
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

// look finds the object's entry and compares it with what it is now. It needs
// p.mu, as do all below.
func (p *Plan) look(s Subject, now time.Time) *entry {
	e := p.entryOf(s, now)
	if e.inputs != s.Inputs {
		e.inputs = s.Inputs
		e.failures = 0
		if e.parked { // the problem was fixed; the time before does not count as lag
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

// entryOf finds the object's entry, or makes one.
func (p *Plan) entryOf(s Subject, now time.Time) *entry {
	old, known := p.entries[s.Key]
	if known && old.uid == s.UID {
		return old
	}
	e := &entry{key: s.Key, uid: s.UID, interval: s.Interval, inputs: s.Inputs, index: notListed}
	e.next, e.cause = firstProbe(s, now)
	e.since = e.next
	if known { // poked before it was seen, or a namesake
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
		e.poked = later(e.poked, now) // the time while it was parked is no lag
	}
	p.list(e)
}

// list sets the announcement of an object that has just been given a new time.
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
		return // another one is sooner: the ticker's time to wake up stands
	}
	select {
	case p.changed <- struct{}{}:
	default: // a wake-up is already waiting
	}
}

// firstProbe is when an object is due that this process sees for the first
// time: at once when there is no result, at its next slot when there is, and
// within catchUp when a slot was missed.
func firstProbe(s Subject, now time.Time) (time.Time, Cause) {
	if !s.Fresh {
		return now, Changed
	}
	if missed := now.Sub(s.LastProbe) > s.Interval+s.Heartbeat; missed {
		return now.Add(spread(now, s.UID, s.Interval)), Slot
	}
	return now.Add(untilSlot(now, s.UID, s.Interval)), Slot
}

// backoff is the wait after so many failures in a row.
func backoff(failures int, interval time.Duration) time.Duration {
	wait, limit := firstBackoff, min(interval, maxBackoff)
	for ; failures > 1 && wait < limit; failures-- {
		wait *= 2
	}
	return min(wait, limit)
}

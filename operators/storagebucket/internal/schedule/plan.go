// Package schedule decides when each bucket is probed next, and wakes the
// controller when that time has come.
//
// Every object has its own fixed slots on the wall clock, one an interval, at
// an offset taken from its UID. So objects with the same interval are spread
// over it, and stay spread when the controller restarts.
//
//	          first seen, never probed
//	                   │
//	                   ▼
//	┌─────────────▶  due  ◀───────────── inputs changed
//	│                  │ Probed
//	│ its slot comes   ▼
//	└────────────── waiting ───────────▶ (Forget)
//
// A Plan lives in memory only. What must survive a restart is in the objects'
// status; everything else is worked out again from the UID and the clock.
package schedule

import (
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// catchUp is the time over which objects whose slot passed while nobody was
// watching are spread after a start.
const catchUp = 30 * time.Second

// Subject is what a Plan has to know of an object.
type Subject struct {
	// Key names the object.
	Key types.NamespacedName
	// UID sets the object's phase, and tells it from a namesake.
	UID types.UID
	// Interval between two probes; more than zero.
	Interval time.Duration
	// Inputs is a fingerprint of all that a probe's result depends on. When it
	// changes the last result is worth nothing.
	Inputs string
	// Fresh says that the object's status already holds a result for its
	// present spec. It counts only the first time the object is seen: after
	// that the plan knows better than a status read from a cache.
	Fresh bool
	// LastProbe is when that was; zero when it is not known.
	LastProbe time.Time
}

// Plan holds the next probe time of every object. It is safe for concurrent
// use.
type Plan struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry

	// changed has an element whenever a time to wake up moved closer.
	changed chan struct{}
}

type entry struct {
	uid      types.UID
	interval time.Duration
	inputs   string
	// next is when the object becomes due.
	next time.Time
	// announce is when somebody has to be told. It is later than next once
	// that has been done, so that an object is announced once a slot and not
	// without end while its probe is under way.
	announce time.Time
}

// NewPlan returns an empty plan.
func NewPlan(c clock.PassiveClock) *Plan {
	return &Plan{
		clock:   c,
		entries: map[types.NamespacedName]*entry{},
		changed: make(chan struct{}, 1),
	}
}

// Due tells whether the object has to be probed now, and takes note of it when
// it was not known.
func (p *Plan) Due(s Subject) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	e, known := p.entries[s.Key]
	if !known || e.uid != s.UID {
		e = &entry{uid: s.UID, interval: s.Interval, inputs: s.Inputs, next: firstProbe(s, now)}
		p.entries[s.Key] = e
		p.setAnnounce(e, e.next)
	}
	return e.inputs != s.Inputs || !now.Before(e.next)
}

// Probed notes that the object was probed just now, and that the result was
// kept. Its next turn is its next slot, or the first slot after retryAfter.
func (p *Plan) Probed(s Subject, retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	next := now.Add(retryAfter)
	next = next.Add(untilSlot(next, s.UID, s.Interval))
	e := &entry{uid: s.UID, interval: s.Interval, inputs: s.Inputs, next: next}
	p.entries[s.Key] = e
	p.setAnnounce(e, next)
}

// Forget drops an object.
func (p *Plan) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.entries, key)
}

// announce returns the objects that became due and were not announced yet, and
// how long to wait for the next one; a negative wait means there is none.
func (p *Plan) announce() (due []types.NamespacedName, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, wait := p.clock.Now(), -1
	for key, e := range p.entries {
		if !now.Before(e.announce) {
			due = append(due, key)
			e.announce = now.Add(untilSlot(now, e.uid, e.interval))
		}
		if d := e.announce.Sub(now); wait < 0 || d < wait {
			wait = d
		}
	}
	return due, wait
}

// setAnnounce needs p.mu.
func (p *Plan) setAnnounce(e *entry, at time.Time) {
	e.announce = at
	select {
	case p.changed <- struct{}{}:
	default: // a wake-up is already waiting
	}
}

// firstProbe is when an object is due that this process sees for the first
// time: at once when there is no result, at its next slot when there is, and
// within catchUp when a slot was missed.
func firstProbe(s Subject, now time.Time) time.Time {
	if !s.Fresh {
		return now
	}
	wait := untilSlot(now, s.UID, s.Interval)
	if missed := now.Sub(s.LastProbe) > s.Interval; missed {
		wait = min(wait, time.Duration(phase(s.UID)%uint64(catchUp)))
	}
	return now.Add(wait)
}

// untilSlot is the time from now to the object's next slot, more than zero and
// at most an interval. It is added to a time that carries Go's monotonic
// reading, so a step of the wall clock does not stop the probes.
func untilSlot(now time.Time, uid types.UID, interval time.Duration) time.Duration {
	offset := time.Duration(phase(uid) % uint64(interval))
	sinceSlot := (now.UnixNano() - int64(offset)) % int64(interval)
	if sinceSlot < 0 {
		sinceSlot += int64(interval)
	}
	return interval - time.Duration(sinceSlot)
}

// phase spreads UIDs evenly over 64 bits.
func phase(uid types.UID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return h.Sum64()
}

// Timeout is how long a probe may take when probes are interval apart: limit,
// or four fifths of the interval where that is less, so that a store that
// hangs has been judged before the next slot.
func Timeout(limit, interval time.Duration) time.Duration {
	return min(limit, interval/5*4)
}

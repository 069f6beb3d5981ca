package schedule

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func subject(name string) Subject {
	return Subject{
		Key:      types.NamespacedName{Namespace: "default", Name: name},
		UID:      types.UID("uid-" + name),
		Interval: 30 * time.Second,
		Inputs:   "1/a",
	}
}

func newPlan() (*Plan, *testingclock.FakePassiveClock) {
	c := testingclock.NewFakePassiveClock(start)
	return NewPlan(c), c
}

// advance moves the clock on.
func advance(c *testingclock.FakePassiveClock, d time.Duration) { c.SetTime(c.Now().Add(d)) }

func TestNewObjectIsDueAtOnce(t *testing.T) {
	p, _ := newPlan()
	if !p.Due(subject("a")) {
		t.Error("not due")
	}
}

func TestObjectStaysDueUntilItsResultIsKept(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	for range 3 {
		if !p.Due(s) {
			t.Fatal("not due any more, though nothing was kept")
		}
		advance(c, time.Millisecond)
	}
	p.Probed(s, 0)
	if p.Due(s) {
		t.Error("due right after a probe")
	}
}

func TestObjectIsDueOnceAnInterval(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	probes := 0
	for range 10 * 30 * 10 { // ten intervals in steps of 100 ms
		advance(c, 100*time.Millisecond)
		if p.Due(s) {
			probes++
			p.Probed(s, 0)
		}
	}
	if probes != 10 {
		t.Errorf("%d probes in ten intervals", probes)
	}
}

func TestChangedInputsAreDueAtOnce(t *testing.T) {
	p, _ := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	s.Inputs = "2/a"
	if !p.Due(s) {
		t.Error("not due after a change")
	}
	p.Probed(s, 0)
	if p.Due(s) {
		t.Error("due twice for one change")
	}
}

func TestStaleStatusDoesNotMakeAProbedObjectDue(t *testing.T) {
	p, _ := newPlan()
	s := subject("a") // Fresh is false, as in a cache that lags behind
	p.Due(s)
	p.Probed(s, 0)
	if p.Due(s) {
		t.Error("due because of a stale read")
	}
}

func TestNamesakeIsANewObject(t *testing.T) {
	p, _ := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	s.UID = "another"
	if !p.Due(s) {
		t.Error("not due")
	}
}

func TestForgottenObjectIsNotAnnounced(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	p.Forget(s.Key)
	advance(c, time.Hour)
	if due, wait := p.announce(); len(due) != 0 || wait >= 0 {
		t.Errorf("announced %v, wait %v", due, wait)
	}
}

func TestDueObjectIsAnnouncedOnceASlot(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	advance(c, s.Interval)
	if due, _ := p.announce(); len(due) != 1 {
		t.Fatalf("announced %v", due)
	}
	if due, wait := p.announce(); len(due) != 0 || wait <= 0 || wait > s.Interval {
		t.Errorf("announced again: %v, wait %v", due, wait)
	}
	advance(c, s.Interval)
	if due, _ := p.announce(); len(due) != 1 {
		t.Error("an object whose probe never ended is not announced in the next slot")
	}
}

func TestRetryAfterDelaysTheNextProbe(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	p.Probed(s, 2*time.Minute)
	advance(c, 2*time.Minute)
	if p.Due(s) {
		t.Error("due before the store's time is over")
	}
	advance(c, s.Interval)
	if !p.Due(s) {
		t.Error("not due in the slot after that")
	}
}

func TestRestartProbesNothingThatIsFresh(t *testing.T) {
	p, _ := newPlan()
	for i := range 100 {
		s := subject(fmt.Sprint(i))
		s.Fresh, s.LastProbe = true, start.Add(-time.Second)
		if p.Due(s) {
			t.Fatalf("object %d is due at the start", i)
		}
	}
}

func TestObjectsAreSpreadOverTheInterval(t *testing.T) {
	for name, lastProbe := range map[string]time.Duration{
		"after a short restart": -time.Second,
		"after a long outage":   -24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			p, c := newPlan()
			const objects, parts = 3000, 30
			for i := range objects {
				s := subject(fmt.Sprint(i))
				s.Fresh, s.LastProbe = true, start.Add(lastProbe)
				p.Due(s)
			}
			for second := range parts {
				advance(c, time.Second)
				due, _ := p.announce()
				if n := len(due); n < 60 || n > 150 {
					t.Errorf("second %d: %d objects of %d, want about %d", second, n, objects, objects/parts)
				}
			}
		})
	}
}

func TestMissedSlotOfALongIntervalIsCaughtUpSoon(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	s.Interval, s.Fresh, s.LastProbe = 24*time.Hour, true, start.Add(-48*time.Hour)
	p.Due(s)
	advance(c, catchUp)
	if !p.Due(s) {
		t.Error("not due after the time for catching up")
	}
}

func TestSlotsStayWhereTheyAreWhenAProbeIsLate(t *testing.T) {
	uid, interval := types.UID("x"), time.Minute
	slot := start.Add(untilSlot(start, uid, interval))
	for late := time.Duration(0); late < interval; late += 7 * time.Second {
		now := slot.Add(late)
		if next := now.Add(untilSlot(now, uid, interval)); !next.Equal(slot.Add(interval)) {
			t.Errorf("%v late: next slot %v, want %v", late, next, slot.Add(interval))
		}
	}
}

func TestTimeoutIsShorterThanTheInterval(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		time.Second:      800 * time.Millisecond,
		5 * time.Second:  4 * time.Second,
		30 * time.Second: 5 * time.Second,
	} {
		if got := Timeout(5*time.Second, interval); got != want {
			t.Errorf("%v: got %v, want %v", interval, got, want)
		}
	}
}

func TestNextSlotIsAheadAndAtMostAnIntervalAway(t *testing.T) {
	times := []int64{0, -1, 1, start.UnixNano(), -start.UnixNano(), 1 << 62, -(1 << 62)}
	intervals := []time.Duration{1, 7, time.Second, time.Hour, 1 << 62}
	for _, nanos := range times {
		for _, interval := range intervals {
			for _, uid := range []types.UID{"", "x", "c5f9a3e8-2d1a-4a55-9a53-5a3c1f0d2b11"} {
				if d := untilSlot(time.Unix(0, nanos), uid, interval); d <= 0 || d > interval {
					t.Errorf("at %d, interval %v, UID %q: got %v", nanos, interval, uid, d)
				}
			}
		}
	}
}

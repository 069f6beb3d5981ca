package schedule

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// settled returns a subject whose last probe was just before the start.
func settled(name string) Subject {
	s := subject(name)
	s.Fresh, s.LastProbe = true, start.Add(-time.Second)
	return s
}

func newPlan() (*Plan, *testingclock.FakePassiveClock) {
	c := testingclock.NewFakePassiveClock(start)
	return NewPlan(c), c
}

// advance moves the clock forward.
func advance(c *testingclock.FakePassiveClock, d time.Duration) { c.SetTime(c.Now().Add(d)) }

// wantTurn checks why the subject is due, and since when.
func wantTurn(t *testing.T, p *Plan, s Subject, want Turn) {
	t.Helper()
	if diff := cmp.Diff(want, p.Due(s)); diff != "" {
		t.Errorf("turn (-want +got):\n%s", diff)
	}
}

// announced returns the announcements of the plan at this moment.
func announced(p *Plan) []Announcement {
	due, _ := p.announce()
	return due
}

func TestNewObjectIsDueAtOnce(t *testing.T) {
	p, _ := newPlan()
	wantTurn(t, p, subject("a"), Turn{Cause: Changed})
}

func TestObjectStaysDueUntilItsResultIsKeptAndItsLagGrows(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	for i := range 3 {
		wantTurn(t, p, s, Turn{Cause: Changed, Lag: time.Duration(i) * time.Millisecond})
		advance(c, time.Millisecond)
	}
	p.Probed(s, 0)
	wantTurn(t, p, s, Turn{})
}

func TestObjectIsDueOnceAnInterval(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	probes := 0
	for range 10 * 30 * 10 { // ten intervals in steps of 100 ms
		advance(c, 100*time.Millisecond)
		if turn := p.Due(s); turn.Cause != "" {
			if turn.Cause != Slot || turn.Lag >= 100*time.Millisecond {
				t.Fatalf("turn %+v", turn)
			}
			probes++
			p.Probed(s, 0)
		}
	}
	if probes != 10 {
		t.Errorf("%d probes in ten intervals", probes)
	}
}

func TestChangedInputsAreDueAtOnceAndOnce(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	advance(c, time.Second)
	s.Inputs = "2/a"
	wantTurn(t, p, s, Turn{Cause: Changed})
	p.Probed(s, 0)
	wantTurn(t, p, s, Turn{})
}

func TestStaleStatusDoesNotMakeAProbedObjectDue(t *testing.T) {
	p, _ := newPlan()
	s := subject("a") // Fresh is false, as in a cache that lags behind
	p.Due(s)
	p.Probed(s, 0)
	wantTurn(t, p, s, Turn{})
}

func TestNamesakeIsANewObject(t *testing.T) {
	p, _ := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	s.UID = "another"
	wantTurn(t, p, s, Turn{Cause: Changed})
	if p.Len() != 1 || len(p.agenda) != 1 {
		t.Errorf("%d entries, %d listed", p.Len(), len(p.agenda))
	}
}

func TestForgottenObjectIsNotAnnounced(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	p.Forget(s.Key)
	p.Forget(s.Key)
	advance(c, time.Hour)
	if due, wait := p.announce(); len(due) != 0 || wait >= 0 {
		t.Errorf("announced %v, wait %v", due, wait)
	}
	if p.Len() != 0 {
		t.Errorf("%d entries left", p.Len())
	}
}

func TestDueObjectIsAnnouncedOnceASlot(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	p.Probed(s, 0)
	advance(c, s.Interval)
	if due := announced(p); len(due) != 1 || due[0].Urgent {
		t.Fatalf("announced %v", due)
	}
	if due, wait := p.announce(); len(due) != 0 || wait <= 0 || wait > s.Interval {
		t.Errorf("announced again: %v, wait %v", due, wait)
	}
	advance(c, s.Interval)
	if due := announced(p); len(due) != 1 {
		t.Error("an object whose probe never ended is not announced in the next slot")
	}
}

func TestRetryAfterDelaysTheNextProbe(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	p.Probed(s, 2*time.Minute)
	advance(c, 2*time.Minute)
	wantTurn(t, p, s, Turn{})
	advance(c, s.Interval)
	if p.Due(s).Cause != Slot {
		t.Error("not due in the slot after that")
	}
}

func TestShorterIntervalBringsTheSlotForwardWithoutAnExtraProbe(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	s.Interval = 24 * time.Hour
	p.Probed(s, 0)
	s.Interval = 10 * time.Second
	wantTurn(t, p, s, Turn{})
	advance(c, s.Interval)
	if got := p.Due(s).Cause; got != Slot {
		t.Errorf("cause %q after the new interval", got)
	}
	if due := announced(p); len(due) != 1 {
		t.Errorf("announced %v", due)
	}
}

func TestPostponedObjectKeepsItsCauseAndItsLag(t *testing.T) {
	p, c := newPlan()
	s := subject("a")
	wantTurn(t, p, s, Turn{Cause: Changed})
	for i := range 5 {
		p.Postpone(s, time.Second)
		if due := announced(p); len(due) != 0 {
			t.Fatalf("announced %v before the wait is over", due)
		}
		wantTurn(t, p, s, Turn{})
		advance(c, time.Second)
		if due := announced(p); len(due) != 1 {
			t.Fatalf("announced %v after the wait", due)
		}
		wantTurn(t, p, s, Turn{Cause: Changed, Lag: time.Duration(i+1) * time.Second})
	}
}

func TestBackoffDoublesIsCappedAndIsResetByAProbe(t *testing.T) {
	for name, test := range map[string]struct {
		interval, floor time.Duration
		want            []time.Duration
	}{
		"capped by the interval":    {interval: 10 * time.Second, want: seconds(1, 2, 4, 8, 10, 10)},
		"capped at five minutes":    {interval: time.Hour, want: seconds(1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300)},
		"at least the floor":        {interval: 10 * time.Second, floor: 3 * time.Second, want: seconds(3, 3, 4, 8, 10)},
		"a floor beyond the cap":    {interval: 10 * time.Second, floor: time.Minute, want: seconds(60, 60)},
		"an interval of one second": {interval: time.Second, want: seconds(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			p, c := newPlan()
			s := subject("a")
			s.Interval = test.interval
			p.Due(s)
			for i, want := range append(test.want, test.want...) {
				if i == len(test.want) {
					p.Probed(s, 0)
				}
				p.Backoff(s, test.floor)
				advance(c, want-1)
				if turn := p.Due(s); turn.Cause != "" {
					t.Fatalf("failure %d: due before %v", i+1, want)
				}
				advance(c, 1)
				if turn := p.Due(s); turn.Cause == "" || turn.Lag != 0 {
					t.Fatalf("failure %d: %+v after %v", i+1, turn, want)
				}
			}
		})
	}
}

func seconds(list ...int) []time.Duration {
	out := make([]time.Duration, len(list))
	for i, n := range list {
		out[i] = time.Duration(n) * time.Second
	}
	return out
}

func TestBackoffKeepsTheCauseAndGivesWayToChangesAndPokes(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	p.Due(s)
	p.Poke(s.Key)
	wantTurn(t, p, s, Turn{Cause: Poked})
	p.Backoff(s, time.Minute)
	wantTurn(t, p, s, Turn{})
	advance(c, time.Minute)
	wantTurn(t, p, s, Turn{Cause: Poked})

	p.Probed(s, 0)
	p.Backoff(s, time.Minute)
	s.Inputs = "2/a"
	wantTurn(t, p, s, Turn{Cause: Changed})

	p.Backoff(s, time.Minute)
	p.Poke(s.Key)
	wantTurn(t, p, s, Turn{Cause: Poked})
}

func TestParkedObjectIsNeverAnnouncedAndWakesSpread(t *testing.T) {
	for name, interval := range map[string]time.Duration{
		"over its interval": 8 * time.Second,
		"over 30 seconds":   24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			p, c := newPlan()
			const objects = 2000
			subjects := make([]Subject, objects)
			for i := range subjects {
				subjects[i] = subject(fmt.Sprint(i))
				subjects[i].Interval = interval
				if i%2 == 0 { // others are first seen while the store is down
					p.Probed(subjects[i], 0)
				}
				p.Park(subjects[i])
				p.Park(subjects[i])
			}
			advance(c, 72*time.Hour)
			if due, wait := p.announce(); len(due) != 0 || wait >= 0 {
				t.Fatalf("%d announced, wait %v", len(due), wait)
			}
			for i := range subjects {
				wantTurn(t, p, subjects[i], Turn{})
			}
			window := min(interval, 30*time.Second)
			mean := objects / int(window/time.Second)
			for second := range int(window / time.Second) {
				advance(c, time.Second)
				due := announced(p)
				if n := len(due); n < mean/2 || n > mean*2 {
					t.Errorf("second %d: %d objects, want about %d", second, n, mean)
				}
			}
			for _, s := range subjects {
				if turn := p.Due(s); turn.Cause == "" || turn.Lag > window {
					t.Fatalf("%v: %+v", s.Key, turn)
				}
			}
		})
	}
}

func TestChangedInputsWakeAParkedObjectAtOnce(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	p.Probed(s, 0)
	p.Park(s)
	advance(c, time.Hour)
	s.Inputs = "2/a"
	wantTurn(t, p, s, Turn{Cause: Changed})
}

func TestParkingAgainAfterWakingIsQuiet(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	p.Park(s)
	p.Due(s)
	p.Park(s)
	advance(c, time.Hour)
	if due := announced(p); len(due) != 0 {
		t.Errorf("announced %v", due)
	}
}

func TestPlanIsSafeForConcurrentUse(t *testing.T) {
	p := NewPlan(testingclock.NewFakePassiveClock(start))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 500 {
				s := subject(fmt.Sprint(i % 50))
				switch (i + worker) % 9 {
				case 0:
					p.Probed(s, 0)
				case 1:
					p.Postpone(s, time.Second)
				case 2:
					p.Backoff(s, 0)
				case 3:
					p.Park(s)
				case 4:
					p.Poke(s.Key)
				case 5:
					p.Forget(s.Key)
				case 6:
					p.announce()
				default:
					p.Due(s)
				}
			}
		})
	}
	all.Wait()
	for i, e := range p.agenda {
		if e.index != i || p.entries[e.key] != e {
			t.Fatalf("the agenda has %v at position %d, but its index is %d", e.key, i, e.index)
		}
	}
	if p.Len() > 50 {
		t.Errorf("%d entries", p.Len())
	}
}

func BenchmarkAnnounceTenThousand(b *testing.B) {
	c := testingclock.NewFakePassiveClock(start)
	p := NewPlan(c)
	for i := range 10_000 {
		s := settled(fmt.Sprint(i))
		s.Interval = time.Minute
		p.Due(s)
	}
	b.ReportAllocs()
	count := 0
	for b.Loop() {
		advance(c, resolution)
		count += len(announced(p))
	}
	b.ReportMetric(float64(count)/float64(b.N), "announced/op")
}

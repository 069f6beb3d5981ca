package schedule

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

const patience = 10 * time.Second

// startTicker runs a ticker, and returns its events and a function that stops it.
func startTicker(t *testing.T, p *Plan, c clock.Clock) (<-chan Event, func()) {
	t.Helper()
	events := make(chan Event)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Ticker{Plan: p, Clock: c, Events: events}).Start(ctx) }()
	return events, func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("ticker ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("ticker did not end with its context")
		}
	}
}

func next(t *testing.T, events <-chan Event) types.NamespacedName {
	t.Helper()
	select {
	case e := <-events:
		return e.Object.Object
	case <-time.After(patience):
		t.Fatal("no event")
		return types.NamespacedName{}
	}
}

// await waits until the ticker is waiting on the fake clock.
func await(t *testing.T, c *testingclock.FakeClock) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !c.HasWaiters() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the ticker does not wait on the clock")
		}
	}
}

// wake makes the ticker check the plan again. Moving the fake clock is not enough, because
// a ticker that is about to create a timer does not notice the move.
func wake(p *Plan) {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func TestTickerIsForTheLeaderOnly(t *testing.T) {
	if !(&Ticker{}).NeedLeaderElection() {
		t.Error("every manager would probe")
	}
}

func TestTickerSendsOneEventAnIntervalForEachObject(t *testing.T) {
	c := testingclock.NewFakeClock(start)
	p := NewPlan(c)
	const objects = 5
	for i := range objects {
		p.Probed(subject(fmt.Sprint(i)), 0)
	}
	events, stop := startTicker(t, p, c)
	defer stop()
	for range 3 {
		c.Step(30 * time.Second)
		wake(p)
		seen := map[types.NamespacedName]bool{}
		for range objects {
			seen[next(t, events)] = true
		}
		if len(seen) != objects {
			t.Fatalf("events for %v only", seen)
		}
		select {
		case e := <-events:
			t.Fatalf("a second event for %v in one slot", e.Object.Object)
		default:
		}
		for i := range objects {
			p.Probed(subject(fmt.Sprint(i)), 0)
		}
	}
}

func TestTickerWakesWhenTheTimeComes(t *testing.T) {
	c := testingclock.NewFakeClock(start)
	p := NewPlan(c)
	s := subject("a")
	p.Probed(s, 0)
	<-p.changed // otherwise, the ticker would check the plan twice
	events, stop := startTicker(t, p, c)
	defer stop()
	await(t, c)
	c.Step(30 * time.Second)
	if got := next(t, events); got != s.Key {
		t.Errorf("event for %v", got)
	}
}

func TestTickerWakesForAnObjectThatIsSoonerThanTheOthers(t *testing.T) {
	c := testingclock.NewFakeClock(start)
	p := NewPlan(c)
	slow := subject("slow")
	slow.Interval = time.Hour
	p.Probed(slow, 0)
	events, stop := startTicker(t, p, c)
	defer stop()
	await(t, c)
	fast := subject("fast")
	p.Due(fast) // never probed, so it is due now
	if got := next(t, events); got != fast.Key {
		t.Errorf("event for %v", got)
	}
}

func TestTickerSendingToNobodyEndsWithItsContext(t *testing.T) {
	c := testingclock.NewFakeClock(start)
	p := NewPlan(c)
	for i := range 10 {
		p.Due(subject(fmt.Sprint(i)))
	}
	_, stop := startTicker(t, p, c) // nobody receives
	stop()
}

func TestTickerWithNothingToDoEndsWithItsContext(t *testing.T) {
	c := testingclock.NewFakeClock(start)
	_, stop := startTicker(t, NewPlan(c), c)
	stop()
}

func TestTickerSendsAPokeWhileItSleeps(t *testing.T) {
	c := testingclock.NewFakeClock(start)
	p := NewPlan(c)
	s := settled("a")
	p.Due(s)
	events, stop := startTicker(t, p, c)
	defer stop()
	await(t, c)
	p.Poke(s.Key)
	if got := next(t, events); got != s.Key {
		t.Errorf("event for %v", got)
	}
}

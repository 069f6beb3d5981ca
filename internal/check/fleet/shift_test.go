package fleet

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// loadsOf lets a fleet measure the given loads, one after the other, and returns a channel that is closed
// once the number of labs was changed for all of them.
func loadsOf(f *Fleet, loads ...float64) (followed <-chan struct{}) {
	done := make(chan struct{})
	f.load = func(ctx context.Context) (busy float64, known bool) {
		if len(loads) == 0 {
			close(done)
			<-ctx.Done()
			return 0, false
		}
		busy, loads = loads[0], loads[1:]
		return busy, true
	}
	return done
}

func atMost(n int) func(int) int { return func(int) int { return n } }

func TestLabsAreAddedWhileProcessorsAreIdleAndTakenAwayWhileTheyAreOverloaded(t *testing.T) {
	for name, c := range map[string]struct {
		busy                  float64
		working, fewest, most int
		want                  int
	}{
		"room for one more":              {0.5, 4, 2, 8, 5},
		"no room for one more":           {0.8, 4, 2, 8, 4},
		"a small part of many":           {0.8, 20, 2, 30, 21},
		"mostly idle":                    {0.1, 3, 2, 8, 6},
		"mostly idle, and less work":     {0.1, 3, 2, 4, 4},
		"mostly idle, but no work":       {0.1, 3, 2, 1, 3},
		"overload":                       {0.99, 4, 2, 8, 3},
		"overload with the fewest labs":  {1, 2, 2, 8, 2},
		"room, but no work for one more": {0.3, 4, 2, 4, 4},
		"room, and work for fewer":       {0.3, 4, 2, 1, 4},
		"nothing to do":                  {0, 2, 2, 8, 4},
	} {
		if got := advise(c.busy, c.working, c.fewest, c.most); got != c.want {
			t.Errorf("%s: %d labs, want %d", name, got, c.want)
		}
	}
}

func TestALabThatIsAddedTakesPart(t *testing.T) {
	f := shellFleet(t, "")
	loadsOf(f, 0.1, 0.1)
	if err := f.Grow(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	var together sync.WaitGroup // each call waits until three labs make one
	together.Add(3)
	err := f.Share(t.Context(), Work{Calls: 3, Most: atMost(3), Do: func(context.Context, *Worker, int) error {
		together.Done()
		together.Wait()
		return nil
	}})
	if err != nil || f.Len() != 3 {
		t.Errorf("%d labs, %v", f.Len(), err)
	}
}

func TestNoMoreLabsAreStartedThanTheWorkIsWorth(t *testing.T) {
	f := shellFleet(t, "")
	followed := loadsOf(f, 0.1, 0.1, 0.1)
	if err := f.Grow(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	err := f.Share(t.Context(), Work{Calls: 4, Most: atMost(2), Do: func(context.Context, *Worker, int) error {
		<-followed
		return nil
	}})
	if err != nil || f.Len() != 2 {
		t.Errorf("%d labs, %v", f.Len(), err)
	}
}

func TestTheNumberOfLabsStaysIfOneCannotBeStarted(t *testing.T) {
	one := filepath.Join(t.TempDir(), "one")
	f := shellFleet(t, `*'"setup"'*) mkdir `+one+` && echo '{}' || exit 1 ;;`) // only the first lab starts
	if err := f.Grow(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	measured, again := 0, make(chan struct{})
	f.load = func(ctx context.Context) (busy float64, known bool) {
		if measured++; measured == 2 {
			close(again)
			<-ctx.Done()
		}
		return 0.1, measured == 1
	}
	err := f.Share(t.Context(), Work{Calls: 2, Most: atMost(2), Do: func(_ context.Context, _ *Worker, i int) error {
		if i == 1 {
			return nil
		}
		select {
		case <-again:
			t.Error("the load was measured again, so the lab would be started again")
		case <-time.After(time.Second):
		}
		return nil
	}})
	if err != nil || f.Len() != 1 {
		t.Errorf("%d labs, %v", f.Len(), err)
	}
}

func TestALabThatWaitsIsReleasedWhenNoCallIsLeft(t *testing.T) {
	f := three()
	followed := loadsOf(f, 1)
	var released atomic.Int32
	var after atomic.Bool
	err := f.Share(t.Context(), Work{
		Calls: 10 * labs, Most: atMost(labs), Fewest: labs - 1,
		Do: func(_ context.Context, w *Worker, _ int) error {
			if w.number == labs && after.Load() {
				t.Error("the lab that was to wait made a call")
			}
			<-followed
			after.Store(true)
			return nil
		},
		Then: func(context.Context, *Worker) { released.Add(1) },
	})
	if err != nil || int(released.Load()) != labs {
		t.Errorf("%d of %d labs were released, %v", released.Load(), labs, err)
	}
}

func TestALabThatWaitsWorksInPlaceOfOneThatWasGivenUp(t *testing.T) {
	f := three()
	followed := loadsOf(f, 1)
	var made atomic.Int32
	err := f.Share(t.Context(), Work{Calls: 10 * labs, Most: atMost(labs), Fewest: labs - 1, Do: func(_ context.Context, w *Worker, _ int) error {
		<-followed
		made.Add(1)
		if w.number < labs {
			w.givenUp = &LabError{Number: w.number, Said: "broken"}
		}
		return nil
	}})
	if err != nil || int(made.Load()) != 10*labs {
		t.Errorf("%d of %d calls were made, %v", made.Load(), 10*labs, err)
	}
}

// labs is the number of labs of three, which returns a fleet of labs that are no processes.
const labs = 3

func three() *Fleet {
	f := New(Options{})
	for n := range labs {
		f.workers = append(f.workers, &Worker{fleet: f, number: n + 1})
	}
	return f
}

func TestAnInterruptionAlsoEndsALabThatWaits(t *testing.T) {
	f := three()
	followed := loadsOf(f, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	err := f.Share(ctx, Work{Calls: 10 * labs, Most: atMost(labs), Fewest: labs - 1, Do: func(ctx context.Context, w *Worker, _ int) error {
		<-followed
		if w.number == 1 {
			interrupt()
		}
		<-ctx.Done()
		return nil
	}})
	if err == nil {
		t.Error("the work was not interrupted")
	}
}

func TestTimeThatIsNotIdleIsBusy(t *testing.T) {
	const before = "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 50 0 25 400 25 0 0 0 0 0\ncpu1 50 0 25 400 25 0 0 0 0 0\nintr 1 2\n"
	const after = "cpu  110 10 60 870 60 0 0 10 0 0\ncpu0 1 0 1 1 1 1 1 1 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nctxt 5\n"
	from, _ := parseProcessorTime(strings.NewReader(before))
	to, processors := parseProcessorTime(strings.NewReader(after))
	if share := to.busyShare(from); share != 0.25 || processors != 2 {
		t.Errorf("busy share %v of %d processors, want 0.25 of 2", share, processors)
	}
	if share := from.busyShare(from); share != 1 {
		t.Errorf("without any time, the busy share is %v, want 1", share)
	}
}

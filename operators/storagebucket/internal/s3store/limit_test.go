package s3store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBurstIsAQuarterOfASecondsWorth(t *testing.T) {
	for _, tc := range []struct {
		perSecond float64
		want      int
	}{{1, 1}, {3, 1}, {8, 2}, {300, 75}} {
		synctest.Test(t, func(t *testing.T) {
			l := NewLimiter(tc.perSecond, 1000)
			got := 0
			for range 1000 {
				if release, _ := l.TryAcquire(); release != nil {
					release()
					got++
				}
			}
			if got != tc.want {
				t.Errorf("%v a second: %d at once, want %d", tc.perSecond, got, tc.want)
			}
		})
	}
}

func TestLimitsHaveALowerBound(t *testing.T) {
	for _, perSecond := range []float64{0, -1, nan()} {
		l := NewLimiter(perSecond, 0)
		if release, _ := l.TryAcquire(); release == nil || l.Concurrency() != 1 {
			t.Errorf("%v a second: nothing passes", perSecond)
		}
	}
}

// pass lets time pass on the clock of a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

func nan() float64 { zero := 0.0; return zero / zero }

func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1e6, 2)
		first, _ := l.TryAcquire()
		second, _ := l.TryAcquire()
		if third, wait := l.TryAcquire(); third != nil || wait < busyWait || first == nil || second == nil {
			t.Fatalf("a third caller was admitted, or got the wait %v", wait)
		}
		first()
		first() // releasing twice frees one place only
		if third, _ := l.TryAcquire(); third == nil {
			t.Error("the released place is not free")
		}
		if fourth, _ := l.TryAcquire(); fourth != nil {
			t.Error("two places were freed")
		}
		second()
	})
}

func TestRefusedCallerTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1, 1)
		release, _ := l.TryAcquire()
		release()
		for range 5 {
			if release, _ := l.TryAcquire(); release != nil {
				t.Fatal("a second request in the same moment")
			}
		}
		pass(time.Second)
		if release, wait := l.TryAcquire(); release == nil {
			t.Errorf("rejected for %v after a second: earlier rejections took places or tokens", wait)
		}
	})
}

func TestCallersThatAreSentAwayComeBackOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, perSecond = 10_000, 300
		l := NewLimiter(perSecond, 16)
		start := time.Now()
		askings, most := comeBack(l, callers)
		t.Logf("%d attempts, at most %d in a second, all callers admitted after %v", askings, most, time.Since(start))
		// Some callers get the same time if there are more callers than the rate allows
		// in maxWait.
		if most > 2*perSecond {
			t.Errorf("%d attempts in one second", most)
		}
		if took, want := time.Since(start), time.Second*callers/perSecond; took > 3*want/2 {
			t.Errorf("the last caller was admitted after %v, want about %v", took, want)
		}
	})
}

// comeBack makes all callers try at the same time. Rejected callers try again after the
// time that they got, until all have been admitted. comeBack returns the total number
// of attempts, and the largest number in any one second after the first.
func comeBack(l *Limiter, callers int) (askings, most int) {
	start := time.Now()
	perSecond := map[time.Duration]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				release, wait := l.TryAcquire()
				mu.Lock()
				askings++
				if second := time.Since(start) / time.Second; second > 0 {
					perSecond[second]++
					most = max(most, perSecond[second])
				}
				mu.Unlock()
				if release != nil {
					release()
					return
				}
				pass(wait)
			}
		})
	}
	all.Wait()
	return askings, most
}

func TestWaitIsAtMostHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1, 1)
		longest := time.Duration(0)
		for range 1000 {
			if release, wait := l.TryAcquire(); release == nil {
				longest = max(longest, wait)
			}
		}
		if longest > maxWait+time.Second || longest < maxWait/2 {
			t.Errorf("longest wait %v", longest)
		}
	})
}

func TestPauseSilencesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(300, 16)
		until := time.Now().Add(time.Minute)
		l.Pause(until)
		l.Pause(until.Add(-30 * time.Second)) // does not shorten it

		waits := map[time.Duration]bool{}
		for range 1000 {
			release, wait := l.TryAcquire()
			if release != nil || wait < time.Minute {
				t.Fatalf("a caller was admitted, or got the wait %v", wait)
			}
			waits[wait] = true
		}
		if len(waits) < 900 {
			t.Errorf("1000 callers got only %d different waits", len(waits))
		}

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := l.Acquire(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 0 {
			t.Errorf("%v after %v, want an error at once", err, time.Since(start))
		}
		if release, err := l.Acquire(t.Context()); err != nil || time.Now().Before(until) {
			t.Errorf("%v, %v too early", err, time.Until(until))
		} else {
			release()
		}
	})
}

func TestPauseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(300, 16)
		l.Pause(time.Now().Add(1000 * time.Hour))
		if got := time.Until(l.PausedUntil()); got != MaxRetryAfter {
			t.Errorf("paused for %v", got)
		}
	})
}

func TestPauseReachesThoseWhoWaitAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1, 16)
		release, _ := l.TryAcquire()
		release()
		var began time.Time
		go func() {
			release, err := l.Acquire(context.Background())
			if err == nil {
				release()
			}
			began = time.Now()
		}()
		synctest.Wait()
		until := time.Now().Add(time.Minute)
		l.Pause(until)
		pass(2 * time.Minute)
		synctest.Wait()
		if began.Before(until) {
			t.Errorf("began %v before the pause was over", until.Sub(began))
		}
	})
}

func TestAcquireKeepsToRateAndConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, perSecond, places = 500, 100, 4
		l := NewLimiter(perSecond, places)
		var under, most atomic.Int32
		start := time.Now()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				release, err := l.Acquire(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				defer release()
				now := under.Add(1)
				defer under.Add(-1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				pass(time.Millisecond)
			})
		}
		all.Wait()
		took := time.Since(start)
		if want := time.Second * (callers - perSecond/4) / perSecond; took < want-time.Second/10 || took > want+time.Second {
			t.Errorf("took %v, want about %v", took, want)
		}
		if most.Load() > places {
			t.Errorf("%d at the same time", most.Load())
		}
	})
}

func TestAcquireEndsWithItsContextAndGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		held, err := l.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := l.Acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		held()
		if _, err := l.Acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("with a place free: %v", err)
		}
		if release, err := l.Acquire(t.Context()); err != nil {
			t.Error(err)
		} else {
			release()
		}
	})
}

func TestChargedRequestsCountAgainstTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(4, 1)
		l.charge()
		l.charge()
		if release, wait := l.TryAcquire(); release != nil || wait < 400*time.Millisecond || wait > time.Second {
			t.Errorf("the caller was admitted, or got the wait %v", wait)
		}
	})
}

func TestDelaysOfTheLimitsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var total time.Duration
		l := NewLimiter(1, 1)
		l.Waited = func(d time.Duration) { total += d }
		release, _ := l.TryAcquire()
		release()
		if total != 0 {
			t.Errorf("%v for a request that nothing delayed", total)
		}
		_, wait := l.TryAcquire()
		if total != wait || wait == 0 {
			t.Errorf("counted %v, and told the caller to wait %v", total, wait)
		}
		total = 0
		began := time.Now()
		release, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release()
		if waited := time.Since(began); total != waited || waited == 0 {
			t.Errorf("counted %v of %v", total, waited)
		}
	})
}

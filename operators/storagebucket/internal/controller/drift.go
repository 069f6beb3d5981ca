package controller

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

const (
	// defaultDriftInterval is the CRD's default for spec.driftInterval.
	defaultDriftInterval = 10 * time.Minute

	// driftCatchUp limits the time over which overdue comparisons are spread after the
	// manager was down.
	driftCatchUp = 10 * time.Minute
)

// driftClock records when the configuration of a managed bucket was last
// compared with the declared configuration.
//
// After a restart, it takes the time from status.lastDriftCheckTime, so that comparisons
// are made even if restarts are more frequent than the interval. A comparison that is
// overdue at a restart gets a random time within the catch-up window. The random times
// prevent all buckets from being compared at the same time, and the same bucket from always
// being the last.
type driftClock struct {
	// random returns a duration from 0 up to, but not including, n.
	random func(n time.Duration) time.Duration

	mu   sync.Mutex
	next map[types.NamespacedName]driftCheck
}

// driftCheck is the time of a bucket's next comparison. The due time was computed from the interval
// and from last, the time of the last comparison.
type driftCheck struct {
	at       time.Time
	interval time.Duration
	last     time.Time
}

func newDriftClock() *driftClock {
	random := rand.N[time.Duration] //nolint:forbidigo // it only spreads load, and no test or report needs to repeat it
	return &driftClock{random: random, next: map[types.NamespacedName]driftCheck{}}
}

// due reports whether the comparison is due.
func (d *driftClock) due(b *storagev1.StorageBucket, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, interval := client.ObjectKeyFromObject(b), driftIntervalOf(b)
	check, known := d.next[key]
	if !known || check.interval != interval {
		if last := b.Status.LastDriftCheckTime; last != nil && last.After(check.last) {
			check.last = last.Time
		}
		check.interval, check.at = interval, d.first(check.last, interval, now)
		d.next[key] = check
	}
	return !now.Before(check.at)
}

// first returns the due time of a bucket that is new to this process, or whose interval
// has changed. If the last comparison is in the future, the clock was wrong, and that
// time is ignored.
func (d *driftClock) first(last time.Time, interval time.Duration, now time.Time) time.Time {
	if at := last.Add(interval); at.After(now) && !last.After(now) {
		return at
	}
	return now.Add(d.random(min(interval, driftCatchUp)))
}

// checked records that the comparison was made.
func (d *driftClock) checked(b *storagev1.StorageBucket, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	interval := driftIntervalOf(b)
	d.next[client.ObjectKeyFromObject(b)] = driftCheck{at: now.Add(interval), interval: interval, last: now}
}

func (d *driftClock) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.next, key)
}

func driftIntervalOf(b *storagev1.StorageBucket) time.Duration {
	if b.Spec.DriftInterval.Duration <= 0 {
		return defaultDriftInterval
	}
	return b.Spec.DriftInterval.Duration
}

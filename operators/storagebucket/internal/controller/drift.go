package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
)

// defaultDriftInterval is the CRD's default.
const defaultDriftInterval = 10 * time.Minute

// driftClock knows when the configuration of a managed bucket was last compared
// with what is declared. That is in memory only: after a restart each bucket
// starts somewhere in its interval, so that they do not come together.
type driftClock struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

func newDriftClock() *driftClock { return &driftClock{last: map[types.NamespacedName]time.Time{}} }

// due tells whether the comparison is due.
func (d *driftClock) due(b *storagev1.StorageBucket, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, interval := client.ObjectKeyFromObject(b), driftIntervalOf(b)
	last, known := d.last[key]
	if !known {
		last = now.Add(-schedule.Phase(b.UID, interval))
		d.last[key] = last
	}
	return now.Sub(last) >= interval
}

// checked notes that it was made.
func (d *driftClock) checked(b *storagev1.StorageBucket, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last[client.ObjectKeyFromObject(b)] = now
}

func (d *driftClock) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.last, key)
}

func driftIntervalOf(b *storagev1.StorageBucket) time.Duration {
	if b.Spec.DriftInterval.Duration <= 0 {
		return defaultDriftInterval
	}
	return b.Spec.DriftInterval.Duration
}

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// standing is the assumed state of a store.
//
//	          settled up                 settled down
//	doubtful ────────────▶ up   doubtful ────────────▶ down
//	    ▲                  │        ▲                    │
//	    └──────────────────┴────────┴────────────────────┘
//	  a bucket's connection failed, or the connection is new
type standing int

const (
	// doubtful means that the store is about to be checked, and that its buckets are not
	// probed until the check has ended.
	doubtful standing = iota
	up
	down
)

// gate holds back requests for the buckets of a store that does not answer. The
// controller of stores opens and closes the gate; the controller of buckets checks it.
// The gate is in memory only: after a start, it relies on the status of the
// ObjectStore.
type gate struct {
	mu     sync.Mutex
	stores map[types.NamespacedName]*storeStanding
	// doubts holds the time of the first failed connection of each bucket that has not
	// answered since.
	doubts map[types.NamespacedName]time.Time
	// inside counts the buckets of each store that are being managed.
	inside map[types.NamespacedName]int
}

type storeStanding struct {
	standing standing
	// inputs holds the inputs of the connection that was checked.
	inputs string
	// at is the time at which the connection was checked.
	at time.Time
}

func newGate() *gate {
	return &gate{
		stores: map[types.NamespacedName]*storeStanding{},
		doubts: map[types.NamespacedName]time.Time{},
		inside: map[types.NamespacedName]int{},
	}
}

// enter admits one more bucket of the store if fewer buckets than the parameter most are being
// managed.
func (g *gate) enter(store types.NamespacedName, most int) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside[store] >= most {
		return nil, false
	}
	g.inside[store]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.inside[store]--; g.inside[store] == 0 {
			delete(g.inside, store)
		}
	}, true
}

// standingOf returns the assumed state of a store that is reached through a
// connection with these inputs.
func (g *gate) standingOf(key types.NamespacedName, inputs string, status *storagev1.ObjectStoreStatus) standing {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s, ok := g.stores[key]; ok {
		if s.inputs != inputs {
			return doubtful
		}
		if s.standing == down && meta.IsStatusConditionTrue(status.Conditions, storagev1.ConditionHealthy) {
			// The new status has not been written yet, or has not reached the cache. If a
			// bucket started to wait for an event now, it might miss the event.
			return doubtful
		}
		return s.standing
	}
	// This process has not checked the store yet. Until the first check ends, the result of
	// the previous process is used.
	switch c := meta.FindStatusCondition(status.Conditions, storagev1.ConditionHealthy); {
	case c == nil:
		return doubtful
	case c.Status == metav1.ConditionTrue:
		return up
	default:
		return down
	}
}

// settle records the result of checking a store.
func (g *gate) settle(key types.NamespacedName, inputs string, s standing, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stores[key] = &storeStanding{standing: s, inputs: inputs, at: at}
}

// believe reports whether a failed connection is certainly a problem of the bucket alone. This is
// certain if the store was checked after the bucket's first failed connection, and answered. If the
// store may be the cause, believe makes the store doubtful.
func (g *gate) believe(bucket, store types.NamespacedName, inputs string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, known := g.stores[store]
	since, doubted := g.doubts[bucket]
	if doubted && known && s.standing == up && s.at.After(since) {
		return true
	}
	if !doubted {
		g.doubts[bucket] = now
	}
	g.stores[store] = &storeStanding{standing: doubtful, inputs: inputs}
	return false
}

// trust drops the doubts about a bucket, because the bucket answered.
func (g *gate) trust(bucket types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.doubts, bucket)
}

// forget drops the state of a store.
func (g *gate) forget(store types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.stores, store)
}

package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/figures"
)

// Record holds the history of the objects. It is safe for concurrent use.
type Record struct {
	mu      sync.Mutex
	healthy map[string]bool
	levels  []figures.Level // numbers of healthy buckets
	writes  []int64
	changed chan struct{} // closed at the next change of levels
}

// Watch starts to record all changes, and returns immediately. The recording ends with
// the context. If the recording fails before then, Watch passes the error to fail.
func (f *Fleet) Watch(ctx context.Context, fail func(error)) (*Record, error) {
	r := &Record{healthy: map[string]bool{}, changed: make(chan struct{})}
	r.levels = []figures.Level{{At: time.Now().UnixNano()}}
	for _, list := range []client.ObjectList{&v1.StorageBucketList{}, &v1.ObjectStoreList{}} {
		// One item is enough, because the watch needs only the version of the list to start
		// from.
		if err := f.client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return nil, fmt.Errorf("listing the objects: %w", err)
		}
		go func() {
			for ctx.Err() == nil {
				if err := f.follow(ctx, list, r); err != nil && ctx.Err() == nil {
					fail(err)
				}
			}
		}()
	}
	return r, nil
}

// follow records the changes after the resource version in list, and updates that version
// with each change. It returns when the API server ends the watch, which it may do at any
// time.
func (f *Fleet) follow(ctx context.Context, list client.ObjectList, r *Record) error {
	w, err := f.client.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})
	if err != nil {
		return fmt.Errorf("watching the objects: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		object, ok := e.Object.(client.Object)
		if !ok || e.Type == watch.Deleted {
			return fmt.Errorf("watching the objects: unexpected event %s: %v", e.Type, e.Object)
		}
		list.SetResourceVersion(object.GetResourceVersion())
		if e.Type == watch.Modified {
			r.modified(object)
		}
	}
	return nil
}

func (r *Record) modified(object client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now().UnixNano()
	r.writes = append(r.writes, now)
	bucket, ok := object.(*v1.StorageBucket)
	if !ok {
		return
	}
	was, is := r.healthy[bucket.Name], meta.IsStatusConditionTrue(bucket.Status.Conditions, v1.ConditionHealthy)
	if was == is {
		return
	}
	r.healthy[bucket.Name] = is
	count := r.levels[len(r.levels)-1].Count + 1
	if was {
		count -= 2
	}
	r.levels = append(r.levels, figures.Level{At: now, Count: count})
	close(r.changed)
	r.changed = make(chan struct{})
}

// Healthy returns the history of the number of healthy buckets: each value, with the time
// at which the number changed to this value.
func (r *Record) Healthy() []figures.Level {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]figures.Level(nil), r.levels...)
}

// Writes returns the times of all changes to StorageBuckets and ObjectStores.
func (r *Record) Writes() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]int64(nil), r.writes...)
}

// Await waits until the given number of buckets is healthy.
func (r *Record) Await(ctx context.Context, want int) error {
	for {
		r.mu.Lock()
		count, changed := r.levels[len(r.levels)-1].Count, r.changed
		r.mu.Unlock()
		if count == want {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d healthy buckets, but there are %d: %w", want, count, context.Cause(ctx))
		}
	}
}

package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
)

// queue receives the requests of the event handlers.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueue adds requests. Requests that are not urgent wait behind edits: a probe may
// be a moment late, but an edit should take effect immediately.
func enqueue(q queue, urgent bool, keys ...types.NamespacedName) {
	pq, prioritised := q.(priorityqueue.PriorityQueue[reconcile.Request])
	for _, key := range keys {
		req := reconcile.Request{NamespacedName: key}
		if urgent || !prioritised {
			q.Add(req)
			continue
		}
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, req)
	}
}

// enqueueDue turns the tickers' events into requests.
func enqueueDue() handler.TypedEventHandler[schedule.Announcement, reconcile.Request] {
	return handler.TypedFuncs[schedule.Announcement, reconcile.Request]{
		GenericFunc: func(_ context.Context, e schedule.Event, q queue) {
			enqueue(q, e.Object.Urgent, e.Object.Object)
		},
	}
}

// specChanged passes events that may require work: a new or deleted object, a changed spec, the
// start of a deletion, a changed annotation. specChanged drops the events of the controllers' own
// status writes.
func specChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers())
		},
	})
}

// standingChanged passes changes of a store that matter to its buckets.
func standingChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*storagev1.ObjectStore)
			after, ok2 := e.ObjectNew.(*storagev1.ObjectStore)
			return !ok1 || !ok2 || before.UID != after.UID || before.Generation != after.Generation ||
				healthOf(before) != healthOf(after)
		},
	}
}

func healthOf(s *storagev1.ObjectStore) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(s.Status.Conditions, storagev1.ConditionHealthy); c != nil {
		return c.Status
	}
	return ""
}

// managementChanged passes an event if a bucket begins or ceases to be managed, because the bucket's
// store may then be needed, or may no longer be needed.
func managementChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return managed(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return managed(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return managed(e.ObjectOld) != managed(e.ObjectNew)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func managed(o client.Object) bool {
	b, ok := o.(*storagev1.StorageBucket)
	return ok && b.Managed()
}

// toStore maps a bucket to the request for its store.
func toStore() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		b, ok := o.(*storagev1.StorageBucket)
		if !ok {
			return nil
		}
		namespace, name := b.StoreKey()
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
	})
}

// toBuckets maps a store to the requests for all buckets in it.
func toBuckets(reader client.Reader) handler.EventHandler {
	all := func(ctx context.Context, o client.Object, q queue) {
		enqueue(q, false, bucketsIn(ctx, reader, client.ObjectKeyFromObject(o))...)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { all(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { all(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { all(ctx, e.Object, q) },
	}
}

// bucketsIn returns the buckets in the given stores.
func bucketsIn(ctx context.Context, reader client.Reader, stores ...types.NamespacedName) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, store := range stores {
		var buckets storagev1.StorageBucketList
		err := reader.List(ctx, &buckets, client.MatchingFields{storeIndex: store.String()}, client.UnsafeDisableDeepCopy)
		if err != nil {
			// Listing the buckets fails only when the cache is stopping.
			ctrl.LoggerFrom(ctx).Error(err, "listing the buckets of a store")
			continue
		}
		for i := range buckets.Items {
			keys = append(keys, client.ObjectKeyFromObject(&buckets.Items[i]))
		}
	}
	return keys
}

// waker is a source of reconcile requests for objects whose dependencies outside the
// cache, such as Secrets, have changed.
type waker struct {
	mu      sync.Mutex
	queue   queue
	waiting []types.NamespacedName
}

var _ source.Source = (*waker)(nil)

// Start is called once, by the controller.
func (w *waker) Start(_ context.Context, q queue) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = q
	enqueue(q, true, w.waiting...)
	w.waiting = nil
	return nil
}

// wake requests a reconciliation of the objects.
func (w *waker) wake(keys ...types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.waiting = append(w.waiting, keys...)
		return
	}
	enqueue(w.queue, true, keys...)
}

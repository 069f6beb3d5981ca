package main

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// ticker sends an empty event once per interval, and runs only on the leader.
type ticker struct {
	interval time.Duration
	events   chan<- event.GenericEvent
}

func (*ticker) NeedLeaderElection() bool { return true }

func (t *ticker) Start(ctx context.Context) error {
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case t.events <- event.GenericEvent{}:
		}
	}
}

func (r *reconciler) setup(mgr ctrl.Manager, o options) error {
	events := make(chan event.GenericEvent)
	if err := mgr.Add(&ticker{interval: o.interval, events: events}); err != nil {
		return fmt.Errorf("adding the ticker: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1.StorageBucket{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(events, handler.EnqueueRequestsFromMapFunc(r.everyBucket))).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.maxConcurrent}).
		Complete(r)
}

// everyBucket returns a request for every bucket.
func (r *reconciler) everyBucket(ctx context.Context, _ client.Object) []reconcile.Request {
	var buckets v1.StorageBucketList
	if err := r.List(ctx, &buckets); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the buckets")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(buckets.Items))
	for i := range buckets.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&buckets.Items[i])})
	}
	return requests
}

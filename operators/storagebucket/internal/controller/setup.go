package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
)

// secretNameIndex finds the buckets that refer to a Secret.
const secretNameIndex = ".spec.credentialsSecretRef.name"

// SetupWithManager adds the controller, and the ticker that wakes it, to a
// manager. The manager's cache is to be made with CacheOptions.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.plan = schedule.NewPlan(r.Clock)
	due := make(chan schedule.Event)
	if err := mgr.Add(&schedule.Ticker{Plan: r.plan, Clock: r.Clock, Events: due}); err != nil {
		return fmt.Errorf("adding the ticker: %w", err)
	}
	err := mgr.GetFieldIndexer().IndexField(ctx, &storagev1alpha1.StorageBucket{}, secretNameIndex, secretNameOf)
	if err != nil {
		return fmt.Errorf("indexing buckets by Secret: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("storagebucket").
		For(&storagev1alpha1.StorageBucket{}, builder.WithPredicates(specChanged())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.bucketsOfSecret),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(source.Channel(due, enqueueDue())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.MaxConcurrent}).
		Complete(r)
}

// specChanged lets through what may change the plan: a new or a gone object,
// another spec, a deletion that began. The controller's own status writes are
// none of these.
func specChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
		},
	})
}

// enqueueDue turns the ticker's events into requests. They wait behind what
// people did: a probe can be late by a moment, an edit should be seen at once.
func enqueueDue() handler.TypedEventHandler[types.NamespacedName, reconcile.Request] {
	return handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
		GenericFunc: func(_ context.Context, e schedule.Event, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			req := reconcile.Request{NamespacedName: e.Object}
			if pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
				pq.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, req)
				return
			}
			q.Add(req)
		},
	}
}

// bucketsOfSecret are the requests for all buckets that use a Secret.
func (r *Reconciler) bucketsOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	var buckets storagev1alpha1.StorageBucketList
	err := r.Client.List(ctx, &buckets, client.InNamespace(secret.GetNamespace()),
		client.MatchingFields{secretNameIndex: secret.GetName()})
	if err != nil {
		// Only a cache that is stopping fails here. The next slot reads the
		// Secret in any case.
		ctrl.LoggerFrom(ctx).Error(err, "listing the buckets of a Secret")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(buckets.Items))
	for i := range buckets.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&buckets.Items[i])})
	}
	return requests
}

func secretNameOf(obj client.Object) []string {
	bucket, ok := obj.(*storagev1alpha1.StorageBucket)
	if !ok {
		return nil
	}
	return []string{bucket.Spec.CredentialsSecretRef.Name}
}

// CacheOptions keep the content of Secrets out of the manager's memory. The
// watch asks for metadata only, but an annotation written by kubectl apply
// repeats the whole Secret; so of a Secret only its identity and version stay.
// No namespaces means all.
func CacheOptions(namespaces ...string) cache.Options {
	o := cache.Options{
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Transform: keepIdentity}},
	}
	for _, namespace := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[namespace] = cache.Config{}
	}
	return o
}

// keepIdentity strips an object's metadata down to what the watch is for.
func keepIdentity(obj any) (any, error) {
	partial, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("caching a %T: Secrets are to be watched by metadata only", obj)
	}
	partial.ObjectMeta = metav1.ObjectMeta{
		Namespace:       partial.Namespace,
		Name:            partial.Name,
		UID:             partial.UID,
		ResourceVersion: partial.ResourceVersion,
	}
	return partial, nil
}

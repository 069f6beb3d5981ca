// Package q3 reconciles pools, each with a Node that gets a label. Class Q3: the objects
// that the controller writes are of a kind that the cluster maintains. A checker that
// ignores such kinds does not notice that a label is lost.
package q3

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// label is the label of a Node that names its zone.
const label = "bugs.koboshi.dev/zone"

// Spec is the desired state.
type Spec struct {
	Node string `json:"node"`
	Zone string `json:"zone"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Pool is the kind that is reconciled.
type Pool = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in the order of their writes.
type reconciler struct {
	client.Client
	live  client.Reader
	apply func(ctx context.Context, r *reconciler, pool *Pool) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Pool")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader(), apply: statusFirst}
	if repaired {
		r.apply = labelFirst
	}
	return ctrl.NewControllerManagedBy(mgr).Named("q3").For(&Pool{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.pools)).Complete(r)
}

// pools returns the pools of a Node.
func (r *reconciler) pools(ctx context.Context, node client.Object) (requests []reconcile.Request) {
	var pools object.List[Spec, Status]
	if err := r.List(ctx, &pools); err != nil {
		return nil // the cache is always there
	}
	for _, pool := range pools.Items {
		if pool.Spec.Node == node.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pool.Namespace, Name: pool.Name}})
		}
	}
	return requests
}

// Reconcile labels the Node of a pool, and reports this in the status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pool Pool
	if err := r.live.Get(ctx, req.NamespacedName, &pool); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, r.apply(ctx, r, &pool)
}

// label sets the label of the Node, unless the Node already has the right label.
func (r *reconciler) label(ctx context.Context, pool *Pool) error {
	var node corev1.Node
	if err := r.live.Get(ctx, types.NamespacedName{Name: pool.Spec.Node}, &node); err != nil {
		return client.IgnoreNotFound(err) // its creation is an event
	}
	if node.Labels[label] == pool.Spec.Zone {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, label, pool.Spec.Zone)
	return client.IgnoreNotFound(r.Patch(ctx, &node, client.RawPatch(types.MergePatchType, patch)))
}

// report records in the status that the pool was reconciled.
func (r *reconciler) report(ctx context.Context, pool *Pool) error {
	if pool.Status.Generation == pool.Generation {
		return nil
	}
	pool.Status.Generation = pool.Generation
	return client.IgnoreNotFound(r.Status().Update(ctx, pool))
}

// Package a2 reconciles groups of workers. Each group has the number of workers that its
// spec declares. Class A2: some workers are not in the cache yet, so too many are
// created, and the surplus is deleted again.
package a2

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// batch is the time for which the events of workers are collected before a reconcile. It is
// also the time after which a group with the wrong number of workers is reconciled again.
const batch = 50 * time.Millisecond

// Spec is the desired state.
type Spec struct {
	Replicas int `json:"replicas"`
}

// Status is the observed state.
type Status struct {
	Replicas int    `json:"replicas,omitempty"`
	Phase    string `json:"phase,omitempty"`
}

// WorkerSpec describes a worker. A worker stands for a Pod: most fields of a Pod cannot be
// changed once the Pod exists.
type WorkerSpec struct {
	Image string `json:"image"`
}

// WorkerStatus is empty.
type WorkerStatus struct{}

type (
	// Group is the kind that is reconciled.
	Group = object.Object[Spec, Status]
	// Worker is the kind of a group's children.
	Worker     = object.Object[WorkerSpec, WorkerStatus]
	workerList = object.List[WorkerSpec, WorkerStatus]
)

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in how they reach the desired number of workers.
type reconciler struct {
	child.Keeper
	scale func(ctx context.Context, k child.Keeper, group *Group, workers []Worker) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("WorkerGroup")
	object.Register[WorkerSpec, WorkerStatus]("Worker")
	r := &reconciler{Keeper: child.NewKeeper(mgr), scale: byDifference}
	if repaired {
		r.scale = byOrdinal
	}
	return ctrl.NewControllerManagedBy(mgr).Named("a2").
		For(&Group{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&Worker{}, gathered()).
		Complete(r)
}

// gathered enqueues the owner of a worker after a short delay, so that the events of
// many workers lead to one reconcile.
func gathered() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(obj client.Object, q queue) {
		for _, ref := range obj.GetOwnerReferences() {
			if ref.Kind == "WorkerGroup" {
				key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: ref.Name}
				q.AddAfter(reconcile.Request{NamespacedName: key}, batch)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			add(e.ObjectOld, q)
			add(e.ObjectNew, q)
		},
	}
}

// Reconcile brings the number of workers to the desired number.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var group Group
	if err := r.Get(ctx, req.NamespacedName, &group); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	workers, err := r.workers(ctx, &group)
	if err != nil {
		return ctrl.Result{}, err
	}
	steady, err := r.scale(ctx, r.Keeper, &group, workers)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.report(ctx, &group, steady)
}

// workers returns those workers of the group that are in the cache and are not being
// deleted.
func (r *reconciler) workers(ctx context.Context, group *Group) ([]Worker, error) {
	var all workerList
	if err := r.List(ctx, &all, client.InNamespace(group.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the workers of %s: %w", group.Name, err)
	}
	var own []Worker
	for _, worker := range all.Items {
		if child.OwnedBy(group)(&worker) && worker.DeletionTimestamp.IsZero() {
			own = append(own, worker)
		}
	}
	return own, nil
}

// report writes the status.
func (r *reconciler) report(ctx context.Context, group *Group, steady bool) (ctrl.Result, error) {
	want := Status{Replicas: group.Spec.Replicas, Phase: "Scaling"}
	if steady {
		want.Phase = "Steady"
	}
	if group.Status == want {
		return ctrl.Result{}, nil
	}
	group.Status = want
	if err := r.Status().Update(ctx, group); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if steady {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: batch}, nil
}

// describe returns a function that fills in the worker as the group requires.
func describe(k child.Keeper, group *Group, worker *Worker) func() {
	return func() {
		worker.Spec.Image = "worker:1"
		k.Own(group, worker)
	}
}

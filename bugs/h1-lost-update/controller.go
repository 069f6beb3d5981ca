// Package h1 has the bug of class H1: the controller overwrites a recent change by
// another client.
package h1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Pool string `json:"pool,omitempty"`
}

// Status is the observed state.
type Status struct {
	Assigned string `json:"assigned,omitempty"`
}

// Assignment takes an item out of a pool and records it in its own annotations, to which
// other clients write as well.
type Assignment = object.Object[Spec, Status]

const assigned = "bugs.koboshi.dev/assigned"

type reconciler struct {
	child.Keeper
	// save writes the metadata of an Assignment.
	save func(ctx context.Context, a *Assignment) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Assignment")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	r.save = r.insist
	if repaired {
		r.save = r.giveWay
	}
	return ctrl.NewControllerManagedBy(mgr).Named("h1").For(&Assignment{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile records the assignment in the annotations, then publishes it.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var a Assignment
	if err := r.Live.Get(ctx, req.NamespacedName, &a); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !a.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	if want := a.Spec.Pool + "-1"; a.Annotations[assigned] != want {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, assigned, want)
		return ctrl.Result{}, r.save(ctx, &a)
	}
	if there, err := r.publish(ctx, &a); err != nil || !there || a.Status.Assigned == a.Annotations[assigned] {
		return ctrl.Result{}, err
	}
	a.Status.Assigned = a.Annotations[assigned]
	return ctrl.Result{}, r.Status().Update(ctx, &a)
}

func (r *reconciler) publish(ctx context.Context, a *Assignment) (bool, error) {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name + "-assigned"}}
	return r.Ensure(ctx, a, o, func() {
		o.Data = map[string]string{"assigned": a.Annotations[assigned]}
		r.Own(a, o)
	})
}

// Package h1 is class H1: what somebody else wrote a moment ago is overwritten.
package h1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is what a person wants.
type Spec struct {
	Pool string `json:"pool,omitempty"`
}

// Status is what there is.
type Status struct {
	Assigned string `json:"assigned,omitempty"`
}

// Assignment takes something out of a pool and notes it on itself, where others
// write too.
type Assignment = object.Object[Spec, Status]

const assigned = "bugs.koboshi.dev/assigned"

type reconciler struct {
	client.Client
	live client.Reader
	// save writes the metadata of an Assignment.
	save func(ctx context.Context, a *Assignment) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Assignment")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	r.save = r.insist
	if repaired {
		r.save = r.giveWay
	}
	return ctrl.NewControllerManagedBy(mgr).Named("h1").For(&Assignment{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile notes what is assigned on the Assignment, then makes it known.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var a Assignment
	if err := r.live.Get(ctx, req.NamespacedName, &a); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !a.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector has the rest
	}
	if want := a.Spec.Pool + "-1"; a.Annotations[assigned] != want {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, assigned, want)
		return ctrl.Result{}, r.save(ctx, &a)
	}
	if err := r.publish(ctx, &a); err != nil {
		return ctrl.Result{}, err
	}
	if a.Status.Assigned == a.Annotations[assigned] {
		return ctrl.Result{}, nil
	}
	a.Status.Assigned = a.Annotations[assigned]
	return ctrl.Result{}, r.Status().Update(ctx, &a)
}

func (r *reconciler) publish(ctx context.Context, a *Assignment) error {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name + "-assigned"}}
	return child.Ensure(ctx, r.Client, o, func() error {
		o.Data = map[string]string{"assigned": a.Annotations[assigned]}
		return controllerutil.SetControllerReference(a, o, r.Scheme())
	})
}

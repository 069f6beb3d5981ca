// Package f4 has the bug of class F4: while a resource is being deleted, the controller
// recreates an object that it has already cleaned up.
package f4

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Servers int `json:"servers,omitempty"`
}

// Status is the observed state.
type Status struct {
	Servers int `json:"servers,omitempty"`
}

// Ensemble is a number of servers that share a configuration.
type Ensemble = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/f4"

type reconciler struct {
	child.Keeper
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Ensemble")
	base := &reconciler{Keeper: child.NewKeeper(mgr)}
	var r reconcile.Reconciler = &fallsThrough{base}
	if repaired {
		r = &stops{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("f4").For(&Ensemble{}).Watches(&corev1.ConfigMap{}, child.ToOwner()).Complete(r)
}

// finish cleans up and removes the finalizer.
func (r *reconciler) finish(ctx context.Context, e *Ensemble) (ctrl.Result, error) {
	gone, err := r.Remove(ctx, config(e), child.MarkedBy(e))
	if err != nil || !gone {
		return ctrl.Result{}, err // the deletion will cause an event
	}
	controllerutil.RemoveFinalizer(e, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, e))
}

// run creates the configuration and reports it. Unlike Ensure, it does not check whether
// the Ensemble is being deleted, because that would hide the bug.
func (r *reconciler) run(ctx context.Context, e *Ensemble) error {
	c := config(e)
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, c, func() error {
		c.Data = map[string]string{"servers": strconv.Itoa(e.Spec.Servers)}
		child.Mark(c, e)
		return nil
	})
	if err != nil || e.Status.Servers == e.Spec.Servers {
		return err
	}
	e.Status.Servers = e.Spec.Servers
	return r.Status().Update(ctx, e)
}

func config(e *Ensemble) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name + "-config"}}
}

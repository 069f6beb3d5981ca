// Package f4 is class F4: the controller makes again what it has cleaned up for a
// resource that is about to go.
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

// Spec is what a person wants.
type Spec struct {
	Servers int `json:"servers,omitempty"`
}

// Status is what there is.
type Status struct {
	Servers int `json:"servers,omitempty"`
}

// Ensemble is some servers with a common configuration.
type Ensemble = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/f4"

type reconciler struct {
	client.Client
	live client.Reader
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Ensemble")
	base := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	var r reconcile.Reconciler = &fallsThrough{base}
	if repaired {
		r = &stops{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("f4").For(&Ensemble{}).Watches(&corev1.ConfigMap{}, child.ToOwner()).Complete(r)
}

// finish cleans up and takes the finalizer off.
func (r *reconciler) finish(ctx context.Context, e *Ensemble) (ctrl.Result, error) {
	gone, err := child.Remove(ctx, r.Client, r.live, config(e), child.MarkedBy(e))
	if err != nil {
		return ctrl.Result{}, err
	}
	if !gone {
		return ctrl.Result{RequeueAfter: child.Again}, nil
	}
	controllerutil.RemoveFinalizer(e, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, e))
}

// run makes the configuration and reports it.
func (r *reconciler) run(ctx context.Context, e *Ensemble) error {
	c := config(e)
	err := child.Ensure(ctx, r.Client, c, func() error {
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

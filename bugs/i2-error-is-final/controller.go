// Package i2 is class I2: an error that would be over in a second is written down
// as final.
package i2

import (
	"context"
	"fmt"

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
	Hosts int `json:"hosts,omitempty"`
}

// Status is what there is.
type Status struct {
	Phase      string `json:"phase,omitempty"`
	Generation int64  `json:"generation,omitempty"`
}

// Installation is some hosts, each with its configuration. Their number only grows.
type Installation = object.Object[Spec, Status]

type reconciler struct {
	client.Client
	live client.Reader
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Installation")
	base := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	var r reconcile.Reconciler = &aborts{base}
	if repaired {
		r = &retries{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("i2").For(&Installation{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// get reads an Installation that is to be there; nil means that there is nothing
// to do.
func (r *reconciler) get(ctx context.Context, req ctrl.Request) (*Installation, error) {
	var i Installation
	if err := r.live.Get(ctx, req.NamespacedName, &i); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !i.DeletionTimestamp.IsZero() {
		return nil, nil // the garbage collector has the rest
	}
	return &i, nil
}

func (r *reconciler) ensureHosts(ctx context.Context, i *Installation) error {
	for n := range i.Spec.Hosts {
		host := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: fmt.Sprintf("%s-host-%d", i.Name, n)}}
		err := child.Ensure(ctx, r.Client, host, func() error {
			host.Data = map[string]string{"host": fmt.Sprint(n)}
			return controllerutil.SetControllerReference(i, host, r.Scheme())
		})
		if err != nil {
			return fmt.Errorf("host %d: %w", n, err)
		}
	}
	return nil
}

func (r *reconciler) report(ctx context.Context, i *Installation, phase string) error {
	want := Status{Phase: phase, Generation: i.Generation}
	if i.Status == want {
		return nil
	}
	i.Status = want
	return r.Status().Update(ctx, i)
}

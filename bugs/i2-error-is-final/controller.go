// Package i2 has the bug of class I2: an error that would have passed within a second is
// recorded as final.
package i2

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Hosts int `json:"hosts,omitempty"`
}

// Status is the observed state.
type Status struct {
	Phase      string `json:"phase,omitempty"`
	Generation int64  `json:"generation,omitempty"`
}

// Installation is a number of hosts, each with its own configuration; the number of hosts
// can only grow.
type Installation = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Installation")
	base := &reconciler{Keeper: child.NewKeeper(mgr)}
	var r reconcile.Reconciler = &aborts{base}
	if repaired {
		r = &retries{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("i2").For(&Installation{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// get reads an Installation. It returns nil if the Installation does not exist or is
// being deleted.
func (r *reconciler) get(ctx context.Context, req ctrl.Request) (*Installation, error) {
	var i Installation
	if err := r.Live.Get(ctx, req.NamespacedName, &i); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !i.DeletionTimestamp.IsZero() {
		return nil, nil // the garbage collector does the rest
	}
	return &i, nil
}

func (r *reconciler) ensureHosts(ctx context.Context, i *Installation) (bool, error) {
	all := true
	for n := range i.Spec.Hosts {
		host := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: fmt.Sprintf("%s-host-%d", i.Name, n)}}
		there, err := r.Ensure(ctx, i, host, func() {
			host.Data = map[string]string{"host": fmt.Sprint(n)}
			r.Own(i, host)
		})
		if err != nil {
			return false, fmt.Errorf("host %d: %w", n, err)
		}
		all = all && there
	}
	return all, nil
}

func (r *reconciler) report(ctx context.Context, i *Installation, phase string) error {
	want := Status{Phase: phase, Generation: i.Generation}
	if i.Status == want {
		return nil
	}
	i.Status = want
	return r.Status().Update(ctx, i)
}

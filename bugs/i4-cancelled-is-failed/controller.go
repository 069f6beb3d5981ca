// Package i4 has the bug of class I4: work that is interrupted because the controller exits is recorded
// as failed.
package i4

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
	Components []string `json:"components,omitempty"`
}

// Status is the observed state.
type Status struct {
	State      string `json:"state,omitempty"`
	Generation int64  `json:"generation,omitempty"`
}

// Operation installs components, each with its own configuration.
type Operation = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Operation")
	base := &reconciler{Keeper: child.NewKeeper(mgr)}
	var r reconcile.Reconciler = &fails{base}
	if repaired {
		r = &resumes{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("i4").For(&Operation{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// get reads an Operation. It returns nil if the Operation does not exist or is being deleted.
func (r *reconciler) get(ctx context.Context, req ctrl.Request) (*Operation, error) {
	var o Operation
	if err := r.Live.Get(ctx, req.NamespacedName, &o); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !o.DeletionTimestamp.IsZero() {
		return nil, nil // the garbage collector does the rest
	}
	return &o, nil
}

func (r *reconciler) install(ctx context.Context, o *Operation) (bool, error) {
	all := true
	for _, name := range o.Spec.Components {
		component := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name + "-" + name}}
		there, err := r.Ensure(ctx, o, component, func() {
			component.Data = map[string]string{"component": name}
			r.Own(o, component)
		})
		if err != nil {
			return false, fmt.Errorf("component %s: %w", name, err)
		}
		all = all && there
	}
	return all, nil
}

func (r *reconciler) report(ctx context.Context, o *Operation, state string) error {
	want := Status{State: state, Generation: o.Generation}
	if o.Status == want {
		return nil
	}
	o.Status = want
	return r.Status().Update(ctx, o)
}

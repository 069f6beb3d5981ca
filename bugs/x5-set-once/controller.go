// Package x5 reconciles ferries, each with a ConfigMap that has the annotations of the spec. Class X5: a
// change of the spec has no effect.
package x5

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Ferry is the kind that is reconciled.
type Ferry = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in
// when they set the annotations.
type reconciler struct {
	child.Keeper
	annotate func(m *corev1.ConfigMap, annotations map[string]string)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Ferry")
	r := &reconciler{Keeper: child.NewKeeper(mgr), annotate: once}
	if repaired {
		r.annotate = always
	}
	return ctrl.NewControllerManagedBy(mgr).Named("x5").
		For(&Ferry{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Complete(r)
}

// Reconcile writes the ConfigMap and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ferry Ferry
	if err := r.Get(ctx, req.NamespacedName, &ferry); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = ferry.Namespace, ferry.Name
	there, err := r.Ensure(ctx, &ferry, m, func() {
		m.Data = map[string]string{"size": strconv.FormatInt(ferry.Spec.Size, 10)}
		r.annotate(m, ferry.Spec.Annotations)
		r.Own(&ferry, m)
	})
	if err != nil || !there || ferry.Status.Generation == ferry.Generation {
		return ctrl.Result{}, err
	}
	ferry.Status.Generation = ferry.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &ferry))
}

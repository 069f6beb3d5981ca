// Package x2 reconciles berths, each with a ConfigMap that has the labels of the spec. Class X2: what
// is removed from the spec is not removed from the child.
package x2

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
	Size   int64             `json:"size"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Berth is the kind that is reconciled.
type Berth = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in
// how they set labels.
type reconciler struct {
	child.Keeper
	label func(m *corev1.ConfigMap, labels map[string]string)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Berth")
	r := &reconciler{Keeper: child.NewKeeper(mgr), label: added}
	if repaired {
		r.label = replaced
	}
	return ctrl.NewControllerManagedBy(mgr).Named("x2").
		For(&Berth{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Complete(r)
}

// Reconcile writes the ConfigMap and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var berth Berth
	if err := r.Get(ctx, req.NamespacedName, &berth); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = berth.Namespace, berth.Name
	there, err := r.Ensure(ctx, &berth, m, func() {
		m.Data = map[string]string{"size": strconv.FormatInt(berth.Spec.Size, 10)}
		r.label(m, berth.Spec.Labels)
		r.Own(&berth, m)
	})
	if err != nil || !there || berth.Status.Generation == berth.Generation {
		return ctrl.Result{}, err
	}
	berth.Status.Generation = berth.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &berth))
}

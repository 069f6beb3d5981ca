// Package x1 reconciles pools, each with a ConfigMap that holds the settings of its processes.
// Class X1: an optional object of the spec is there, but its optional field is not.
package x1

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
	Size     int64     `json:"size"`
	Security *Security `json:"security,omitempty"`
}

// Security defines the user of the processes.
type Security struct {
	RunAsUser *int64 `json:"runAsUser,omitempty"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Pool is the kind that is reconciled.
type Pool = object.Object[Spec, Status]

// nobody is the user of processes for which the spec names none.
const nobody = 65534

// reconciler holds everything that the controller and its repaired twin share; the two differ in
// how they read the user.
type reconciler struct {
	child.Keeper
	user func(*Security) int64
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Pool")
	r := &reconciler{Keeper: child.NewKeeper(mgr), user: dereferenced}
	if repaired {
		r.user = orNobody
	}
	return ctrl.NewControllerManagedBy(mgr).Named("x1").
		For(&Pool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Complete(r)
}

// Reconcile writes the ConfigMap and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pool Pool
	if err := r.Get(ctx, req.NamespacedName, &pool); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = pool.Namespace, pool.Name
	there, err := r.Ensure(ctx, &pool, m, func() {
		m.Data = map[string]string{
			"size": strconv.FormatInt(pool.Spec.Size, 10),
			"user": strconv.FormatInt(r.user(pool.Spec.Security), 10),
		}
		r.Own(&pool, m)
	})
	if err != nil || !there || pool.Status.Generation == pool.Generation {
		return ctrl.Result{}, err
	}
	pool.Status.Generation = pool.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &pool))
}

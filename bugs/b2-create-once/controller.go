// Package b2 reconciles data grids, and creates a secret and then the set of servers for
// each grid. Class B2: a step that can be done only once is repeated after a failure, and
// from then on fails every time.
package b2

import (
	"context"

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
	Image string `json:"image"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// SetSpec is the desired state of a StatefulSet.
type SetSpec struct {
	Image  string `json:"image"`
	Secret string `json:"secret"`
}

// SetStatus is empty.
type SetStatus struct{}

type (
	// Grid is the kind that is reconciled.
	Grid = object.Object[Spec, Status]
	// Set is the kind of the set of servers, one of a grid's two children.
	Set = object.Object[SetSpec, SetStatus]
)

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in how they create the children.
type reconciler struct {
	child.Keeper
	ensure func(ctx context.Context, k child.Keeper, grid *Grid) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Grid")
	object.Register[SetSpec, SetStatus]("StatefulSet")
	r := &reconciler{Keeper: child.NewKeeper(mgr), ensure: once}
	if repaired {
		r.ensure = always
	}
	return ctrl.NewControllerManagedBy(mgr).Named("b2").
		For(&Grid{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Secret{}).
		Owns(&Set{}).
		Complete(r)
}

// Reconcile creates the children and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var grid Grid
	if err := r.Get(ctx, req.NamespacedName, &grid); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	done, err := r.ensure(ctx, r.Keeper, &grid)
	if err != nil || !done || grid.Status.Generation == grid.Generation {
		return ctrl.Result{}, err
	}
	grid.Status.Generation = grid.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &grid))
}

func secretOf(grid *Grid) *corev1.Secret {
	s := &corev1.Secret{}
	s.Namespace, s.Name = grid.Namespace, grid.Name+"-generated-secret"
	return s
}

func setOf(grid *Grid) *Set {
	s := &Set{}
	s.Namespace, s.Name = grid.Namespace, grid.Name
	return s
}

// describeSecret returns a function that fills in the secret as the grid requires. In this
// controller, the content of the secret is not confidential.
func describeSecret(k child.Keeper, grid *Grid, s *corev1.Secret) func() {
	return func() {
		s.Data = map[string][]byte{"username": []byte(grid.Name)}
		k.Own(grid, s)
	}
}

// describeSet returns a function that fills in the set as the grid requires.
func describeSet(k child.Keeper, grid *Grid, s *Set) func() {
	return func() {
		s.Spec = SetSpec{Image: grid.Spec.Image, Secret: secretOf(grid).Name}
		k.Own(grid, s)
	}
}

// ensureBoth repairs the children that exist and creates those that are missing.
func ensureBoth(ctx context.Context, k child.Keeper, grid *Grid) (bool, error) {
	secret, set := secretOf(grid), setOf(grid)
	if there, err := k.Ensure(ctx, grid, secret, describeSecret(k, grid, secret)); err != nil || !there {
		return false, err
	}
	return k.Ensure(ctx, grid, set, describeSet(k, grid, set))
}

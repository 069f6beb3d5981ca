// Package b2 is a data grid that is made of a secret and, after it, of the cluster
// itself. Class B2: what can be done once only is done again after a failure, and
// fails from then on.
package b2

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is what is wanted.
type Spec struct {
	Image string `json:"image"`
}

// Status is how far it is.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// SetSpec is what a StatefulSet wants.
type SetSpec struct {
	Image  string `json:"image"`
	Secret string `json:"secret"`
}

// SetStatus is empty.
type SetStatus struct{}

type (
	// Grid is a kind that is reconciled.
	Grid = object.Object[Spec, Status]
	// Set is a kind that is made for it.
	Set = object.Object[SetSpec, SetStatus]
)

// reconciler does what both twins do. They differ in how they make the children.
type reconciler struct {
	keep.Keeper
	ensure func(ctx context.Context, k keep.Keeper, grid *Grid) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Grid")
	object.Register[SetSpec, SetStatus]("StatefulSet")
	r := &reconciler{Keeper: keep.New(mgr), ensure: once}
	if repaired {
		r.ensure = always
	}
	return ctrl.NewControllerManagedBy(mgr).Named("b2").
		For(&Grid{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Secret{}).
		Owns(&Set{}).
		Complete(r)
}

// Reconcile makes the children and reports.
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

// describeSecret makes the secret be as the grid wants it. What it says is not
// secret here.
func describeSecret(k keep.Keeper, grid *Grid, s *corev1.Secret) func() {
	return func() {
		s.Data = map[string][]byte{"username": []byte(grid.Name)}
		k.Own(grid, s)
	}
}

// describeSet makes the set be as the grid wants it.
func describeSet(k keep.Keeper, grid *Grid, s *Set) func() {
	return func() {
		s.Spec = SetSpec{Image: grid.Spec.Image, Secret: secretOf(grid).Name}
		k.Own(grid, s)
	}
}

// keepBoth mends what is there and makes what is missing.
func keepBoth(ctx context.Context, k keep.Keeper, grid *Grid) (bool, error) {
	secret, set := secretOf(grid), setOf(grid)
	if there, err := k.Child(ctx, grid, secret, describeSecret(k, grid, secret)); err != nil || !there {
		return false, err
	}
	return k.Child(ctx, grid, set, describeSet(k, grid, set))
}

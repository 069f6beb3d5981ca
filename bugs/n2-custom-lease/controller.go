// Package n2 reconciles tenancies. For each tenancy, the controller writes only two objects
// of a kind named Lease, in the group example.com: one for the flat and one for its cellar.
// Class N2: two objects belong together, and the controller checks only for the first.
//
// A checker that mistakes the Leases of example.com for the Leases of a leader election
// finds no writes to judge, and misses the bug.
package n2

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Tenant string `json:"tenant"`
}

// Status is empty, because a tenancy reports nothing.
type Status struct{}

// LeaseSpec is the content of a lease.
type LeaseSpec struct {
	Room   string `json:"room"`
	Tenant string `json:"tenant"`
}

// LeaseStatus is empty.
type LeaseStatus struct{}

type (
	// Tenancy is the kind that is reconciled.
	Tenancy = object.Object[Spec, Status]
	// Lease is the kind of a tenancy's children.
	Lease = object.Object[LeaseSpec, LeaseStatus]
)

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in when they create the leases.
type reconciler struct {
	child.Keeper
	ensure func(ctx context.Context, k child.Keeper, tenancy *Tenancy) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Tenancy")
	object.RegisterIn[LeaseSpec, LeaseStatus](object.Example, "Lease")
	r := &reconciler{Keeper: child.NewKeeper(mgr), ensure: bothOrNone}
	if repaired {
		r.ensure = eachForItself
	}
	return ctrl.NewControllerManagedBy(mgr).Named("n2").
		For(&Tenancy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&Lease{}).
		Complete(r)
}

// Reconcile creates the leases.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var tenancy Tenancy
	if err := r.Get(ctx, req.NamespacedName, &tenancy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, r.ensure(ctx, r.Keeper, &tenancy)
}

// lease creates one of the two leases.
func lease(ctx context.Context, k child.Keeper, tenancy *Tenancy, room string) error {
	l := &Lease{}
	l.Namespace, l.Name = tenancy.Namespace, tenancy.Name+"-"+room
	_, err := k.Ensure(ctx, tenancy, l, func() {
		l.Spec = LeaseSpec{Room: room, Tenant: tenancy.Spec.Tenant}
		k.Own(tenancy, l)
	})
	return err
}

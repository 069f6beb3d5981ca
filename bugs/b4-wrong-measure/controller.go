// Package b4 reconciles brokers, each with two claims and a set whose storage size cannot
// be changed. To enlarge the storage, the controller deletes the set, enlarges the claims,
// and creates the set again. Class B4: the controller checks only the object that it
// changes first, and so misses steps that are still necessary.
package b4

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
	"github.com/koboshi-dev/koboshi/bugs/internal/storage"
)

// replicas is the number of claims of a broker.
const replicas = 2

// Spec is the desired state.
type Spec struct {
	Size int `json:"size"`
}

// Status is the observed state.
type Status struct {
	Size int `json:"size,omitempty"`
}

// SetSpec is the desired state of a set. The size cannot be changed, as in the claim
// template of a real StatefulSet.
type SetSpec struct {
	Size     int `json:"size"`
	Replicas int `json:"replicas"`
}

// SetStatus is empty.
type SetStatus struct{}

type (
	// Broker is the kind that is reconciled.
	Broker = object.Object[Spec, Status]
	// Set is the kind of a broker's set; the claims are the broker's other children.
	Set = object.Object[SetSpec, SetStatus]
)

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in how they resize the storage.
type reconciler struct {
	child.Keeper
	resize func(ctx context.Context, k child.Keeper, broker *Broker) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Queue")
	object.Register[SetSpec, SetStatus]("StatefulSet")
	storage.Register()
	r := &reconciler{Keeper: child.NewKeeper(mgr), resize: bySet}
	if repaired {
		r.resize = byClaims
	}
	return ctrl.NewControllerManagedBy(mgr).Named("b4").
		For(&Broker{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&Set{}).
		Owns(&storage.Claim{}).
		Complete(r)
}

// Reconcile resizes the storage and creates the set.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var broker Broker
	if err := r.Get(ctx, req.NamespacedName, &broker); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if done, err := r.resize(ctx, r.Keeper, &broker); err != nil || !done {
		return ctrl.Result{}, err
	}
	set := setOf(&broker)
	there, err := r.Ensure(ctx, &broker, set, func() {
		if set.UID == "" {
			set.Spec.Size = broker.Spec.Size
		}
		set.Spec.Replicas = replicas
		r.Own(&broker, set)
	})
	if err != nil || !there || broker.Status.Size == broker.Spec.Size {
		return ctrl.Result{}, err
	}
	broker.Status.Size = broker.Spec.Size
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &broker))
}

// claim creates a claim, and enlarges an existing one if resize is true.
func claim(ctx context.Context, k child.Keeper, broker *Broker, i int, resize bool) (bool, error) {
	c := &storage.Claim{}
	c.Namespace, c.Name = broker.Namespace, fmt.Sprintf("data-%s-%d", broker.Name, i)
	return k.Ensure(ctx, broker, c, func() {
		if resize || c.UID == "" {
			c.Spec.Size = broker.Spec.Size
		}
		k.Own(broker, c)
	})
}

// claims calls claim for all claims of a broker.
func claims(ctx context.Context, k child.Keeper, broker *Broker, resize bool) (bool, error) {
	all := true
	for i := range replicas {
		there, err := claim(ctx, k, broker, i, resize)
		if err != nil {
			return false, err
		}
		all = all && there
	}
	return all, nil
}

func setOf(broker *Broker) *Set {
	s := &Set{}
	s.Namespace, s.Name = broker.Namespace, broker.Name
	return s
}

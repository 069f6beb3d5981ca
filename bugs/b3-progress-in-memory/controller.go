// Package b3 reconciles rings of members, where each member has a claim for storage. When a
// ring shrinks, a member is deleted first and then its claim. Class B3: the controller
// keeps its progress in memory, and stores it only after the next step.
package b3

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
	"github.com/koboshi-dev/koboshi/bugs/internal/storage"
)

// Spec is the desired state.
type Spec struct {
	Nodes int `json:"nodes"`
}

// Status is the observed state.
type Status struct {
	Nodes int `json:"nodes,omitempty"`
	// Operation is the phase of the removal of a member: empty, Ongoing or Finalizing.
	Operation string `json:"operation,omitempty"`
}

// MemberSpec names the storage of a member.
type MemberSpec struct {
	Claim string `json:"claim"`
}

// MemberStatus is empty.
type MemberStatus struct{}

type (
	// Ring is the kind that is reconciled.
	Ring = object.Object[Spec, Status]
	// Member is the kind of a ring's members; their claims are also children of the ring.
	Member = object.Object[MemberSpec, MemberStatus]
)

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in how they remove members.
type reconciler struct {
	child.Keeper
	shrink func(ctx context.Context, k child.Keeper, ring *Ring) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Ring")
	object.Register[MemberSpec, MemberStatus]("Member")
	storage.Register()
	r := &reconciler{Keeper: child.NewKeeper(mgr), shrink: byPhase}
	if repaired {
		r.shrink = byWhatIsThere
	}
	return ctrl.NewControllerManagedBy(mgr).Named("b3").
		For(&Ring{}).
		Owns(&Member{}).
		Owns(&storage.Claim{}).
		Complete(r)
}

// Reconcile creates missing members and removes surplus ones.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ring Ring
	if err := r.Get(ctx, req.NamespacedName, &ring); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	complete := true
	for i := range ring.Spec.Nodes {
		there, err := r.grow(ctx, &ring, i)
		if err != nil {
			return ctrl.Result{}, err
		}
		complete = complete && there
	}
	done, err := r.shrink(ctx, r.Keeper, &ring)
	if err != nil || !done || !complete || ring.Status.Nodes == ring.Spec.Nodes {
		return ctrl.Result{}, err
	}
	ring.Status.Nodes = ring.Spec.Nodes
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &ring))
}

// grow creates a member and its claim.
func (r *reconciler) grow(ctx context.Context, ring *Ring, i int) (bool, error) {
	claim, member := claimOf(ring, i), memberOf(ring, i)
	there, err := r.Ensure(ctx, ring, claim, func() {
		claim.Spec.Size = 1
		r.Own(ring, claim)
	})
	if err != nil || !there {
		return false, err
	}
	return r.Ensure(ctx, ring, member, func() {
		member.Spec.Claim = claim.Name
		r.Own(ring, member)
	})
}

func memberOf(ring *Ring, i int) *Member {
	m := &Member{}
	m.Namespace, m.Name = ring.Namespace, fmt.Sprintf("%s-%d", ring.Name, i)
	return m
}

func claimOf(ring *Ring, i int) *storage.Claim {
	c := &storage.Claim{}
	c.Namespace, c.Name = ring.Namespace, fmt.Sprintf("data-%s-%d", ring.Name, i)
	return c
}

// surplus returns the highest ordinal of a surplus claim, or -1.
func surplus(ctx context.Context, from client.Reader, ring *Ring) (int, error) {
	var claims storage.ClaimList
	if err := from.List(ctx, &claims, client.InNamespace(ring.Namespace)); err != nil {
		return 0, fmt.Errorf("listing the claims of %s: %w", ring.Name, err)
	}
	highest := -1
	for _, c := range claims.Items {
		i, err := strconv.Atoi(strings.TrimPrefix(c.Name, "data-"+ring.Name+"-"))
		if err == nil && child.OwnedBy(ring)(&c) && i >= ring.Spec.Nodes {
			highest = max(highest, i)
		}
	}
	return highest, nil
}

// Package b3 is a ring of members, each with a claim of storage. A member that is
// not wanted any more is deleted, and then its claim. Class B3: how far that is, is
// known in memory and written down last.
package b3

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
	"github.com/koboshi-dev/koboshi/bugs/internal/storage"
)

// Spec is what is wanted.
type Spec struct {
	Nodes int `json:"nodes"`
}

// Status is how far it is.
type Status struct {
	Nodes int `json:"nodes,omitempty"`
	// Operation is what is being done to a member: nothing, Ongoing or Finalizing.
	Operation string `json:"operation,omitempty"`
}

// MemberSpec says which storage a member uses.
type MemberSpec struct {
	Claim string `json:"claim"`
}

// MemberStatus is empty.
type MemberStatus struct{}

type (
	// Ring is a kind that is reconciled.
	Ring = object.Object[Spec, Status]
	// Member is a kind that is made for it.
	Member = object.Object[MemberSpec, MemberStatus]
)

// reconciler does what both twins do. They differ in how they come to fewer
// members.
type reconciler struct {
	keep.Keeper
	shrink func(ctx context.Context, k keep.Keeper, ring *Ring) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Ring")
	object.Register[MemberSpec, MemberStatus]("Member")
	storage.Register()
	r := &reconciler{Keeper: keep.New(mgr), shrink: byPhase}
	if repaired {
		r.shrink = byWhatIsThere
	}
	return ctrl.NewControllerManagedBy(mgr).Named("b3").
		For(&Ring{}).
		Owns(&Member{}).
		Owns(&storage.Claim{}).
		Complete(r)
}

// Reconcile makes the members that are missing and takes away those that are too
// many.
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

// grow makes a member and its claim.
func (r *reconciler) grow(ctx context.Context, ring *Ring, i int) (bool, error) {
	claim, member := claimOf(ring, i), memberOf(ring, i)
	there, err := r.Child(ctx, ring, claim, func() {
		claim.Spec.Size = 1
		r.Own(ring, claim)
	})
	if err != nil || !there {
		return false, err
	}
	return r.Child(ctx, ring, member, func() {
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

// surplus is the highest ordinal of a claim that is not wanted, or -1.
func surplus(ctx context.Context, from client.Reader, ring *Ring) (int, error) {
	var claims storage.ClaimList
	if err := from.List(ctx, &claims, client.InNamespace(ring.Namespace)); err != nil {
		return 0, fmt.Errorf("listing the claims of %s: %w", ring.Name, err)
	}
	highest := -1
	for _, c := range claims.Items {
		i, err := strconv.Atoi(strings.TrimPrefix(c.Name, "data-"+ring.Name+"-"))
		if err == nil && keep.Owned(ring, &c) && i >= ring.Spec.Nodes {
			highest = max(highest, i)
		}
	}
	return highest, nil
}

// Package d3 has the bug of class D3: the controller deletes by name an object that it
// sees in its cache, but by then a newer object has that name.
package d3

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Revision string `json:"revision,omitempty"`
}

// Status is the observed state.
type Status struct {
	Revision string `json:"revision,omitempty"`
}

// Group is a group of workers with one leader. A leader cannot be changed, so each
// revision gets a new one.
type Group = object.Object[Spec, Status]

// lookAgain is the time after which the controller checks whether a new leader still exists.
const lookAgain = 50 * time.Millisecond

type reconciler struct {
	child.Keeper
	// drop deletes a leader of another revision.
	drop func(ctx context.Context, leader *corev1.ConfigMap) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Group")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	r.drop = r.deleteByName
	if repaired {
		r.drop = r.deleteAsSeen
	}
	return ctrl.NewControllerManagedBy(mgr).Named("d3").
		For(&Group{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Complete(r)
}

// Reconcile replaces the leader if it belongs to another revision, reports the new leader,
// and checks a little later whether the new leader still exists.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var g Group
	if err := r.Live.Get(ctx, req.NamespacedName, &g); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !g.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	if ready, err := r.ensureLeader(ctx, &g); err != nil || !ready {
		return ctrl.Result{}, err
	}
	if g.Status.Revision == g.Spec.Revision {
		return ctrl.Result{}, nil
	}
	g.Status.Revision = g.Spec.Revision
	if err := r.Status().Update(ctx, &g); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

// ensureLeader creates or replaces the leader, and reports whether there is a leader for
// this revision.
func (r *reconciler) ensureLeader(ctx context.Context, g *Group) (bool, error) {
	leader := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: g.Namespace, Name: g.Name + "-leader"}
	err := r.Get(ctx, key, leader)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err == nil && !leader.DeletionTimestamp.IsZero() {
		return false, nil // the deletion will cause an event
	}
	if err == nil && leader.Data["revision"] != g.Spec.Revision {
		if err := r.drop(ctx, leader); err != nil {
			return false, err
		}
		return true, r.createLeader(ctx, g, key)
	}
	if apierrors.IsNotFound(err) {
		return true, r.createLeader(ctx, g, key)
	}
	return r.Ensure(ctx, g, leader, func() { r.Own(g, leader) })
}

func (r *reconciler) createLeader(ctx context.Context, g *Group, key client.ObjectKey) error {
	leader := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data:       map[string]string{"revision": g.Spec.Revision},
		Immutable:  new(true),
	}
	if err := controllerutil.SetControllerReference(g, leader, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, leader)
}

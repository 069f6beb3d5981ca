// Package f2 has the bug of class F2: the finalizer is removed although the cleanup
// failed.
package f2

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Manifest string `json:"manifest,omitempty"`
}

// Status is the observed state.
type Status struct {
	Deployed bool `json:"deployed,omitempty"`
}

// Release is an installed chart. The installed objects have no owner, because
// they could be in any namespace.
type Release = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/f2"

type reconciler struct {
	child.Keeper
	// uninstall deletes the installed object, and reports whether it is gone.
	uninstall func(ctx context.Context, rel *Release) (gone bool, err error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Release")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	r.uninstall = r.bestEffort
	if repaired {
		r.uninstall = r.untilItIsGone
	}
	return ctrl.NewControllerManagedBy(mgr).Named("f2").For(&Release{}).Watches(&corev1.ConfigMap{}, child.ToOwner()).Complete(r)
}

// Reconcile installs a Release, or uninstalls it when it is being deleted.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rel Release
	if err := r.Live.Get(ctx, req.NamespacedName, &rel); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !rel.DeletionTimestamp.IsZero() {
		return r.finish(ctx, &rel)
	}
	if controllerutil.AddFinalizer(&rel, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &rel)
	}
	o := installed(&rel)
	there, err := r.Ensure(ctx, &rel, o, func() {
		o.Data = map[string]string{"manifest": rel.Spec.Manifest}
		child.Mark(o, &rel)
	})
	if err != nil || !there || rel.Status.Deployed {
		return ctrl.Result{}, err
	}
	rel.Status.Deployed = true
	return ctrl.Result{}, r.Status().Update(ctx, &rel)
}

func (r *reconciler) finish(ctx context.Context, rel *Release) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(rel, finalizer) {
		return ctrl.Result{}, nil
	}
	gone, err := r.uninstall(ctx, rel)
	if err != nil || !gone {
		return ctrl.Result{}, err // the deletion will cause an event
	}
	controllerutil.RemoveFinalizer(rel, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, rel))
}

func installed(rel *Release) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rel.Namespace, Name: rel.Name + "-installed"}}
}

// Package b5 reconciles releases. A finalizer holds a release until it is uninstalled.
// Class B5: an update is retried with an object that the first attempt has already
// changed in memory.
package b5

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

const finalizer = "bugs.koboshi.dev/uninstall"

// Spec is the desired state.
type Spec struct {
	Chart string `json:"chart"`
}

// Status is the observed state.
type Status struct {
	Chart string `json:"chart,omitempty"`
}

// Release is the kind that is reconciled.
type Release = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in how they update a release, and in what they do once its finalizer is removed.
type reconciler struct {
	child.Keeper
	apply func(ctx context.Context, k child.Keeper, release *Release, change func(*Release) bool) error
	after func(ctx context.Context, k child.Keeper, release *Release) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("ChartRelease")
	r := &reconciler{Keeper: child.NewKeeper(mgr), apply: sameObject, after: waitUntilGone}
	if repaired {
		r.apply, r.after = oneTry, nothing
	}
	return ctrl.NewControllerManagedBy(mgr).Named("b5").
		For(&Release{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Complete(r)
}

// Reconcile installs a release, or uninstalls it if it is being deleted.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var release Release
	if err := r.Get(ctx, req.NamespacedName, &release); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !release.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.uninstall(ctx, &release)
	}
	return ctrl.Result{}, r.install(ctx, &release)
}

// install adds the finalizer, creates the manifest of the release, and reports the
// result.
func (r *reconciler) install(ctx context.Context, release *Release) error {
	err := r.apply(ctx, r.Keeper, release, func(o *Release) bool {
		return controllerutil.AddFinalizer(o, finalizer)
	})
	if err != nil {
		return err
	}
	manifest := manifestOf(release)
	there, err := r.Ensure(ctx, release, manifest, func() {
		manifest.Data = map[string]string{"chart": release.Spec.Chart}
		r.Own(release, manifest)
	})
	if err != nil || !there || release.Status.Chart == release.Spec.Chart {
		return err
	}
	release.Status.Chart = release.Spec.Chart
	return client.IgnoreNotFound(r.Status().Update(ctx, release))
}

// uninstall deletes the manifest of the release, and then removes the finalizer.
func (r *reconciler) uninstall(ctx context.Context, release *Release) error {
	if !controllerutil.ContainsFinalizer(release, finalizer) {
		return nil
	}
	if gone, err := r.Remove(ctx, manifestOf(release), child.OwnedBy(release)); err != nil || !gone {
		return err
	}
	err := r.apply(ctx, r.Keeper, release, func(o *Release) bool {
		return controllerutil.RemoveFinalizer(o, finalizer)
	})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return r.after(ctx, r.Keeper, release)
}

func manifestOf(release *Release) *corev1.ConfigMap {
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = release.Namespace, release.Name+"-manifest"
	return m
}

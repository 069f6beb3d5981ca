// Package b5 is a release that has to be uninstalled before it is gone: it carries
// a finalizer. Class B5: an update is tried again with an object that the first try
// has changed in memory already.
package b5

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

const finalizer = "bugs.koboshi.dev/uninstall"

// Spec is what is wanted.
type Spec struct {
	Chart string `json:"chart"`
}

// Status is how far it is.
type Status struct {
	Chart string `json:"chart,omitempty"`
}

// Release is the kind that is reconciled.
type Release = object.Object[Spec, Status]

// reconciler does what both twins do. They differ in how they update a release, and
// in what they do when its finalizer is off.
type reconciler struct {
	keep.Keeper
	apply func(ctx context.Context, k keep.Keeper, release *Release, change func(*Release) bool) error
	after func(ctx context.Context, k keep.Keeper, release *Release) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("ChartRelease")
	r := &reconciler{Keeper: keep.New(mgr), apply: sameObject, after: waitUntilGone}
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

// install puts the finalizer on, makes what the release consists of, and reports.
func (r *reconciler) install(ctx context.Context, release *Release) error {
	err := r.apply(ctx, r.Keeper, release, func(o *Release) bool {
		return controllerutil.AddFinalizer(o, finalizer)
	})
	if err != nil {
		return err
	}
	manifest := manifestOf(release)
	there, err := r.Child(ctx, release, manifest, func() {
		manifest.Data = map[string]string{"chart": release.Spec.Chart}
		r.Own(release, manifest)
	})
	if err != nil || !there || release.Status.Chart == release.Spec.Chart {
		return err
	}
	release.Status.Chart = release.Spec.Chart
	return client.IgnoreNotFound(r.Status().Update(ctx, release))
}

// uninstall deletes what the release consists of, and then takes the finalizer off.
func (r *reconciler) uninstall(ctx context.Context, release *Release) error {
	if !controllerutil.ContainsFinalizer(release, finalizer) {
		return nil
	}
	if gone, err := r.Gone(ctx, manifestOf(release)); err != nil || !gone {
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

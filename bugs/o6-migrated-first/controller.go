// Package o6 reconciles booths, each with a ConfigMap. Its new version gives the ConfigMap another name, and
// removes the old one, once for each booth. Class O6: an upgrade does not survive a kill.
package o6

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Screens int64 `json:"screens"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
	// Migrated is the mark of the new version: there is no ConfigMap with the old name.
	Migrated bool `json:"migrated,omitempty"`
}

// Booth is the kind that is reconciled.
type Booth = object.Object[Spec, Status]

// reconciler holds everything that all versions of the controller share. migrate is nil in the old version.
type reconciler struct {
	child.Keeper
	name    func(booth *Booth) string
	migrate func(*reconciler, context.Context, *Booth) error
}

// Setup adds the new version of the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	if repaired {
		return setup(mgr, newName, (*reconciler).removedFirst)
	}
	return setup(mgr, newName, (*reconciler).reportedFirst)
}

// SetupOld adds the version from which users upgrade.
func SetupOld(mgr ctrl.Manager) error { return setup(mgr, oldName, nil) }

func setup(mgr ctrl.Manager, name func(*Booth) string, migrate func(*reconciler, context.Context, *Booth) error) error {
	object.Register[Spec, Status]("Booth")
	r := &reconciler{child.NewKeeper(mgr), name, migrate}
	return ctrl.NewControllerManagedBy(mgr).Named("o6").For(&Booth{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

func oldName(booth *Booth) string { return booth.Name }

func newName(booth *Booth) string { return booth.Name + "-settings" }

// Reconcile migrates a booth, creates or updates its ConfigMap, and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var booth Booth
	if err := r.Live.Get(ctx, req.NamespacedName, &booth); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !booth.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if r.migrate != nil && !booth.Status.Migrated {
		if err := r.migrate(r, ctx, &booth); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = booth.Namespace, r.name(&booth)
	done, err := r.Ensure(ctx, &booth, m, func() {
		m.Data = map[string]string{"screens": strconv.FormatInt(booth.Spec.Screens, 10)}
		r.Own(&booth, m)
	})
	if err != nil || !done || booth.Status.Generation == booth.Generation {
		return ctrl.Result{}, err
	}
	booth.Status.Generation = booth.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &booth))
}

// mark notes that a booth has been migrated.
func (r *reconciler) mark(ctx context.Context, booth *Booth) error {
	booth.Status.Migrated = true
	return r.Status().Update(ctx, booth)
}

// removeOld deletes the ConfigMap that an old version has made for the booth.
func (r *reconciler) removeOld(ctx context.Context, booth *Booth) error {
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = booth.Namespace, oldName(booth)
	_, err := r.Remove(ctx, m, child.OwnedBy(booth))
	return err
}

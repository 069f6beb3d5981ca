// Package o3 reconciles kiosks, each with a ConfigMap. Its new version gives the ConfigMap another name.
// Class O3: an upgrade leads to another state than a fresh installation.
package o3

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
}

// Kiosk is the kind that is reconciled.
type Kiosk = object.Object[Spec, Status]

// reconciler holds everything that all versions of the controller share; they differ in the name of the
// ConfigMap, and in what they do with a ConfigMap that has the old name.
type reconciler struct {
	child.Keeper
	name    func(kiosk *Kiosk) string
	cleanUp func(*reconciler, context.Context, *Kiosk) error
}

// Setup adds the new version of the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	if repaired {
		return setup(mgr, newName, (*reconciler).removed)
	}
	return setup(mgr, newName, (*reconciler).ignored)
}

// SetupOld adds the version from which users upgrade.
func SetupOld(mgr ctrl.Manager) error { return setup(mgr, oldName, (*reconciler).ignored) }

func setup(mgr ctrl.Manager, name func(*Kiosk) string, cleanUp func(*reconciler, context.Context, *Kiosk) error) error {
	object.Register[Spec, Status]("Kiosk")
	r := &reconciler{child.NewKeeper(mgr), name, cleanUp}
	return ctrl.NewControllerManagedBy(mgr).Named("o3").For(&Kiosk{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

func oldName(kiosk *Kiosk) string { return kiosk.Name }

func newName(kiosk *Kiosk) string { return kiosk.Name + "-settings" }

// Reconcile creates or updates the ConfigMap of a kiosk, and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var kiosk Kiosk
	if err := r.Live.Get(ctx, req.NamespacedName, &kiosk); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !kiosk.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = kiosk.Namespace, r.name(&kiosk)
	done, err := r.Ensure(ctx, &kiosk, m, func() {
		m.Data = map[string]string{"screens": strconv.FormatInt(kiosk.Spec.Screens, 10)}
		r.Own(&kiosk, m)
	})
	if err == nil && done {
		err = r.cleanUp(r, ctx, &kiosk)
	}
	if err != nil || !done || kiosk.Status.Generation == kiosk.Generation {
		return ctrl.Result{}, err
	}
	kiosk.Status.Generation = kiosk.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &kiosk))
}

// Package o4 reconciles fleets, each with a ConfigMap. In its new version, a field of the spec has another
// name. Class O4: an upgrade loses what users have stored.
package o4

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// seenBy is the annotation of a fleet with the version of the controller that has seen it. Only the new
// version sets it.
const seenBy, current = "bugs.koboshi.dev/seen-by", "2.0.0"

// Sized is the spec of one of the versions.
type Sized interface {
	// Count returns the number of boats.
	Count() int64
}

// OldSpec is the desired state in the old version.
type OldSpec struct {
	Size int64 `json:"size"`
}

// Count implements Sized.
func (s OldSpec) Count() int64 { return s.Size }

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// reconciler holds everything that all versions of the controller share; they differ in the type of the
// spec. The old version does not mark the fleets that it has seen.
type reconciler[Spec Sized] struct {
	child.Keeper
	marks bool
}

// Setup adds the new version of the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	if repaired {
		return setup[BothFields](mgr, true)
	}
	return setup[OneField](mgr, true)
}

// SetupOld adds the version from which users upgrade.
func SetupOld(mgr ctrl.Manager) error { return setup[OldSpec](mgr, false) }

func setup[Spec Sized](mgr ctrl.Manager, marks bool) error {
	object.Register[Spec, Status]("Fleet")
	r := &reconciler[Spec]{child.NewKeeper(mgr), marks}
	return ctrl.NewControllerManagedBy(mgr).Named("o4").For(&object.Object[Spec, Status]{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile marks the fleet, creates or updates its ConfigMap, and reports the result.
func (r *reconciler[Spec]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var fleet object.Object[Spec, Status]
	if err := r.Live.Get(ctx, req.NamespacedName, &fleet); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !fleet.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if r.marks && fleet.Annotations[seenBy] != current {
		metav1.SetMetaDataAnnotation(&fleet.ObjectMeta, seenBy, current)
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &fleet)) // the update is an event
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = fleet.Namespace, fleet.Name
	done, err := r.Ensure(ctx, &fleet, m, func() {
		m.Data = map[string]string{"boats": strconv.FormatInt(fleet.Spec.Count(), 10)}
		r.Own(&fleet, m)
	})
	if err != nil || !done || fleet.Status.Generation == fleet.Generation {
		return ctrl.Result{}, err
	}
	fleet.Status.Generation = fleet.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &fleet))
}

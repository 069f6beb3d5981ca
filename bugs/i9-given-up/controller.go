// Package i9 has the bug of class I9: after one failed request, a program is never notified of its new settings.
package i9

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Oil    string `json:"oil"`
	Keeper string `json:"keeper"`
}

// Status is the observed state.
type Status struct {
	Oil        string             `json:"oil,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Lantern is a lantern with some oil. Its keeper is a ConfigMap, which stands in for a program that must be
// notified if the oil changes.
type Lantern = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Lantern")
	base := &reconciler{Keeper: child.NewKeeper(mgr)}
	var r reconcile.Reconciler = &givesUp{base}
	if repaired {
		r = &repeats{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("i9").For(&Lantern{}).Complete(r)
}

// get reads a Lantern. It returns nil if the Lantern does not exist, is being deleted, or needs no work.
func (r *reconciler) get(ctx context.Context, req ctrl.Request) (*Lantern, error) {
	var lantern Lantern
	if err := r.Live.Get(ctx, req.NamespacedName, &lantern); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !lantern.DeletionTimestamp.IsZero() || lantern.Status.Oil == lantern.Spec.Oil {
		return nil, nil
	}
	return &lantern, nil
}

// notify writes the oil into the ConfigMap of the keeper.
func (r *reconciler) notify(ctx context.Context, lantern *Lantern) error {
	keeper := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: lantern.Namespace, Name: lantern.Spec.Keeper}, keeper); err != nil {
		return fmt.Errorf("keeper %s: %w", lantern.Spec.Keeper, err)
	}
	before := keeper.DeepCopy()
	keeper.Data = map[string]string{"uses": lantern.Spec.Oil}
	if equality.Semantic.DeepEqual(before, keeper) {
		return nil
	}
	return r.Update(ctx, keeper)
}

// report writes to the status that the lantern has its oil, and whether the notification failed.
func (r *reconciler) report(ctx context.Context, lantern *Lantern, failure error) error {
	lantern.Status.Oil = lantern.Spec.Oil
	keeper := metav1.Condition{Type: "KeeperNotified", Status: metav1.ConditionTrue, Reason: "Notified"}
	if failure != nil {
		keeper.Status, keeper.Reason, keeper.Message = metav1.ConditionFalse, "NotificationFailed", "The keeper could not be notified."
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Filled"}
	for _, condition := range []metav1.Condition{keeper, ready} {
		condition.ObservedGeneration = lantern.Generation
		meta.SetStatusCondition(&lantern.Status.Conditions, condition)
	}
	return client.IgnoreNotFound(r.Status().Update(ctx, lantern))
}

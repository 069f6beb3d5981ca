// Package x6 reconciles barges, each with a PodDisruptionBudget. Class X6: the controller uses a version
// of an API that Kubernetes has removed.
package x6

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Size int64 `json:"size"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Barge is the kind that is reconciled.
type Barge = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in the
// version of the budget.
type reconciler struct {
	child.Keeper
	version schema.GroupVersion
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Barge")
	r := &reconciler{Keeper: child.NewKeeper(mgr), version: removed}
	made := ctrl.NewControllerManagedBy(mgr).Named("x6").For(&Barge{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	if repaired {
		r.version = served
		made.Owns(&policyv1.PodDisruptionBudget{}) // a watch of the removed version would never begin
	}
	return made.Complete(r)
}

// Reconcile applies the budget and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var barge Barge
	if err := r.Get(ctx, req.NamespacedName, &barge); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !barge.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	budget := &unstructured.Unstructured{}
	budget.SetGroupVersionKind(r.version.WithKind("PodDisruptionBudget"))
	budget.SetNamespace(barge.Namespace)
	budget.SetName(barge.Name)
	budget.Object["spec"] = map[string]any{"maxUnavailable": barge.Spec.Size, "selector": map[string]any{"matchLabels": map[string]any{"barge": barge.Name}}}
	r.Own(&barge, budget)
	if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(budget), client.FieldOwner("x6"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	if barge.Status.Generation == barge.Generation {
		return ctrl.Result{}, nil
	}
	barge.Status.Generation = barge.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &barge))
}

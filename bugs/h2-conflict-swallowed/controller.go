// Package h2 has the bug of class H2: a conflict is ignored, and the status is never
// reported.
package h2

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	URL string `json:"url,omitempty"`
}

// Status is the observed state.
type Status struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	Artifact           string `json:"artifact,omitempty"`
}

// Source is fetched and stored as an artifact.
type Source = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
	// report writes the status of a Source.
	report func(ctx context.Context, s *Source) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Source")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	r.report = r.reportIfPossible
	if repaired {
		r.report = r.reportForSure
	}
	return ctrl.NewControllerManagedBy(mgr).Named("h2").
		For(&Source{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}, builder.WithPredicates(predicate.Funcs{CreateFunc: onlyForeign})).
		Complete(r)
}

// onlyForeign ignores the creation of ConfigMaps, because only the controller itself
// creates them.
func onlyForeign(event.CreateEvent) bool { return false }

// Reconcile stores the artifact of a Source and reports it.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s Source
	if err := r.Live.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	artifact := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-artifact"}}
	there, err := r.Ensure(ctx, &s, artifact, func() {
		artifact.Data = map[string]string{"from": s.Spec.URL}
		r.Own(&s, artifact)
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	want := Status{ObservedGeneration: s.Generation, Artifact: artifact.Name}
	if s.Status == want {
		return ctrl.Result{}, nil
	}
	s.Status = want
	return ctrl.Result{}, r.report(ctx, &s)
}

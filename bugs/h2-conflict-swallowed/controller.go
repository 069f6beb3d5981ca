// Package h2 is class H2: a conflict is taken for somebody else's problem, and
// what was to be reported never is.
package h2

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is what a person wants.
type Spec struct {
	URL string `json:"url,omitempty"`
}

// Status is what there is.
type Status struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	Artifact           string `json:"artifact,omitempty"`
}

// Source is something that is fetched and stored as an artifact.
type Source = object.Object[Spec, Status]

type reconciler struct {
	client.Client
	live client.Reader
	// report writes the status of a Source.
	report func(ctx context.Context, s *Source) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Source")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	r.report = r.reportIfPossible
	if repaired {
		r.report = r.reportForSure
	}
	return ctrl.NewControllerManagedBy(mgr).Named("h2").
		For(&Source{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}, builder.WithPredicates(predicate.Funcs{CreateFunc: onlyStrange})).
		Complete(r)
}

// onlyStrange leaves out creations: the controller knows what it made.
func onlyStrange(event.CreateEvent) bool { return false }

// Reconcile stores the artifact of a Source and reports it.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s Source
	if err := r.live.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector has the rest
	}
	artifact := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-artifact"}}
	err := child.Ensure(ctx, r.Client, artifact, func() error {
		artifact.Data = map[string]string{"from": s.Spec.URL}
		return controllerutil.SetControllerReference(&s, artifact, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	want := Status{ObservedGeneration: s.Generation, Artifact: artifact.Name}
	if s.Status == want {
		return ctrl.Result{}, nil
	}
	s.Status = want
	return ctrl.Result{}, r.report(ctx, &s)
}

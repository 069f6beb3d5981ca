// Package e3 has the bug of class E3: the controller's own report wakes the controller,
// which then reports again.
package e3

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Title string `json:"title,omitempty"`
}

// Status is the observed state.
type Status struct {
	Title       string `json:"title,omitempty"`
	Progressing bool   `json:"progressing"`
}

// Site is a page with a title.
type Site = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
}

// Setup adds the controller to a manager. The bug is partly in the watches and partly in
// the reconciler.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Site")
	base := &reconciler{Keeper: child.NewKeeper(mgr)}
	var r reconcile.Reconciler = &restless{base}
	var only []builder.ForOption
	if repaired {
		r = &calm{base}
		only = append(only, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return ctrl.NewControllerManagedBy(mgr).Named("e3").For(&Site{}, only...).Owns(&corev1.ConfigMap{}).Complete(r)
}

// get reads a Site. It returns nil if the Site does not exist or is being deleted.
func (r *reconciler) get(ctx context.Context, req ctrl.Request) (*Site, error) {
	var s Site
	if err := r.Live.Get(ctx, req.NamespacedName, &s); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return nil, nil // the garbage collector does the rest
	}
	return &s, nil
}

func (r *reconciler) ensurePage(ctx context.Context, s *Site) (bool, error) {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-page"}}
	return r.Ensure(ctx, s, page, func() {
		page.Data = map[string]string{"title": s.Spec.Title}
		r.Own(s, page)
	})
}

// Package p2 has the bug of class P2: at each periodic reconcile, the controller writes its
// status again, although nothing has changed.
package p2

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// interval is the time between two reconciles of a Banner.
const interval = 2 * time.Second

// Spec is the desired state.
type Spec struct {
	Title string `json:"title,omitempty"`
}

// Status is the observed state.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Banner is a page with a title.
type Banner = object.Object[Spec, Status]

// reconciler reconciles Banners.
type reconciler struct {
	child.Keeper
	// report sets the condition in a status, and reports whether it must be written.
	report func(*Status, metav1.Condition) bool
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Banner")
	r := &reconciler{Keeper: child.NewKeeper(mgr), report: always}
	if repaired {
		r.report = ifChanged
	}
	return ctrl.NewControllerManagedBy(mgr).Named("p2").
		For(&Banner{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile creates the page of a Banner, and does so again after the interval.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var b Banner
	if err := r.Live.Get(ctx, req.NamespacedName, &b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name + "-page"}}
	there, err := r.Ensure(ctx, &b, page, func() {
		page.Data = map[string]string{"title": b.Spec.Title}
		r.Own(&b, page)
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Created", ObservedGeneration: b.Generation}
	if r.report(&b.Status, ready) {
		if err := r.Status().Update(ctx, &b); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: interval}, nil
}

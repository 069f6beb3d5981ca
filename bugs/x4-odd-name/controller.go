// Package x4 reconciles flotillas, each with a Service of the same name. Class X4: the schema admits a
// name that the API server later rejects for a child, and no status says so.
package x4

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Size int32 `json:"size"`
}

// Status is the observed state.
type Status struct {
	Generation int64  `json:"generation,omitempty"`
	Problem    string `json:"problem,omitempty"`
}

// Flotilla is the kind that is reconciled.
type Flotilla = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in
// what they do if the Service is rejected.
type reconciler struct {
	child.Keeper
	rejected func(*reconciler, context.Context, *Flotilla, error) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Flotilla")
	r := &reconciler{Keeper: child.NewKeeper(mgr), rejected: (*reconciler).again}
	if repaired {
		r.rejected = (*reconciler).told
	}
	return ctrl.NewControllerManagedBy(mgr).Named("x4").
		For(&Flotilla{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Service{}).
		Complete(r)
}

// Reconcile writes the Service and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var flotilla Flotilla
	if err := r.Get(ctx, req.NamespacedName, &flotilla); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &corev1.Service{}
	s.Namespace, s.Name = flotilla.Namespace, flotilla.Name
	there, err := r.Ensure(ctx, &flotilla, s, func() {
		port := 9000 + flotilla.Spec.Size
		s.Spec.Ports = []corev1.ServicePort{{Name: "radio", Port: port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(port)}}
		r.Own(&flotilla, s)
	})
	switch {
	case apierrors.IsInvalid(err):
		return ctrl.Result{}, r.rejected(r, ctx, &flotilla, err)
	case err != nil || !there:
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &flotilla, "")
}

// report writes the status, if it differs.
func (r *reconciler) report(ctx context.Context, flotilla *Flotilla, problem string) error {
	status := Status{Generation: flotilla.Generation, Problem: problem}
	if flotilla.Status == status {
		return nil
	}
	flotilla.Status = status
	return client.IgnoreNotFound(r.Status().Update(ctx, flotilla))
}

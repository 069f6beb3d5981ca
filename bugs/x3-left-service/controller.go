// Package x3 reconciles lighthouses, each with a ConfigMap, and with a Service if its metrics are
// switched on. Class X3: what belongs to a feature stays after the feature is switched off.
package x3

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
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
	Size    int64 `json:"size"`
	Metrics bool  `json:"metrics,omitempty"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Lighthouse is the kind that is reconciled.
type Lighthouse = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in
// what they do without metrics.
type reconciler struct {
	child.Keeper
	off func(*reconciler, context.Context, *Lighthouse) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Lighthouse")
	r := &reconciler{Keeper: child.NewKeeper(mgr), off: (*reconciler).skipped}
	if repaired {
		r.off = (*reconciler).removed
	}
	return ctrl.NewControllerManagedBy(mgr).Named("x3").
		For(&Lighthouse{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).Owns(&corev1.Service{}).
		Complete(r)
}

// Reconcile writes the children and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var house Lighthouse
	if err := r.Get(ctx, req.NamespacedName, &house); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = house.Namespace, house.Name
	there, err := r.Ensure(ctx, &house, m, func() {
		m.Data = map[string]string{"size": strconv.FormatInt(house.Spec.Size, 10)}
		r.Own(&house, m)
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	expose := r.off
	if house.Spec.Metrics {
		expose = (*reconciler).service
	}
	if done, err := expose(r, ctx, &house); err != nil || !done || house.Status.Generation == house.Generation {
		return ctrl.Result{}, err
	}
	house.Status.Generation = house.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &house))
}

// service makes the Service of the metrics.
func (r *reconciler) service(ctx context.Context, house *Lighthouse) (bool, error) {
	s := metrics(house)
	return r.Ensure(ctx, house, s, func() {
		s.Spec.Ports = []corev1.ServicePort{{Name: "metrics", Port: 9090, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(9090)}}
		r.Own(house, s)
	})
}

func metrics(house *Lighthouse) *corev1.Service {
	s := &corev1.Service{}
	s.Namespace, s.Name = house.Namespace, house.Name+"-metrics"
	return s
}

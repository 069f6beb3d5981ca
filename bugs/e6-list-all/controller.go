// Package e6 reconciles censuses, each of which creates a ConfigMap and counts the ConfigMaps that
// belong to it. Class E6: each reconcile lists a whole resource.
package e6

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Level int64 `json:"level"`
}

// Status is the observed state.
type Status struct {
	Level   int64 `json:"level,omitempty"`
	Counted int64 `json:"counted,omitempty"`
}

// Census is the kind that is reconciled.
type Census = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in
// where they read the ConfigMaps from.
type reconciler struct {
	child.Keeper
	configs func(ctx context.Context, namespace string) ([]corev1.ConfigMap, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Census")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	r.configs = r.list
	if repaired {
		r.configs = r.fromCache
	}
	return ctrl.NewControllerManagedBy(mgr).Named("e6").For(&Census{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile writes the ConfigMap, and reports how many there are.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var census Census
	if err := r.Get(ctx, req.NamespacedName, &census); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !census.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: census.Namespace, Name: census.Name}}
	there, err := r.Ensure(ctx, &census, m, func() {
		m.Data = map[string]string{"level": strconv.FormatInt(census.Spec.Level, 10)}
		r.Own(&census, m)
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	all, err := r.configs(ctx, census.Namespace)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("counting the ConfigMaps: %w", err)
	}
	now := Status{Level: census.Spec.Level}
	for i := range all {
		if metav1.IsControlledBy(&all[i], &census) {
			now.Counted++
		}
	}
	if census.Status == now {
		return ctrl.Result{}, nil
	}
	census.Status = now
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &census))
}

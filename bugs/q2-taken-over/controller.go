// Package q2 reconciles settings, each with a ConfigMap of the same name. Class Q2: an
// object with the name of a child already exists and belongs to a user.
package q2

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Value string `json:"value"`
}

// Status is the observed state.
type Status struct {
	// State is Ready, or Conflict if the ConfigMap belongs to a user.
	State string `json:"state,omitempty"`
}

// Setting is the kind that is reconciled.
type Setting = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in which ConfigMaps they write.
type reconciler struct {
	child.Keeper
	mine func(setting *Setting, existing *corev1.ConfigMap) bool
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Setting")
	r := &reconciler{Keeper: child.NewKeeper(mgr), mine: anyConfigMap}
	if repaired {
		r.mine = controlled
	}
	return ctrl.NewControllerManagedBy(mgr).Named("q2").For(&Setting{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile writes the ConfigMap of a setting, unless it belongs to a user.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var setting Setting
	if err := r.Live.Get(ctx, req.NamespacedName, &setting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !setting.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	state, err := r.write(ctx, &setting)
	if err != nil || state == "" || state == setting.Status.State {
		return ctrl.Result{}, err
	}
	setting.Status.State = state
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &setting))
}

// write returns the new state, or an empty string if an event will follow.
func (r *reconciler) write(ctx context.Context, setting *Setting) (string, error) {
	m := &corev1.ConfigMap{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(setting), m)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	if err == nil && !r.mine(setting, m) {
		return "Conflict", nil
	}
	m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: setting.Namespace, Name: setting.Name}}
	there, err := r.Ensure(ctx, setting, m, func() {
		m.Data = map[string]string{"value": setting.Spec.Value}
		r.Own(setting, m)
	})
	if err != nil || !there {
		return "", err
	}
	return "Ready", nil
}

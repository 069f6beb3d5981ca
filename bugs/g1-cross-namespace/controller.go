// Package g1 has the bug of class G1: an owner reference points to an object in another
// namespace, where the garbage collector does not look for it.
package g1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Target  string `json:"target,omitempty"`
	Content string `json:"content,omitempty"`
}

// Status is the observed state.
type Status struct {
	Installed bool `json:"installed,omitempty"`
}

// Stack is installed into another namespace.
type Stack = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Stack")
	base := &reconciler{Keeper: child.NewKeeper(mgr)}
	var r reconcile.Reconciler = &byReference{base}
	if repaired {
		r = &byFinalizer{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("g1").For(&Stack{}).Watches(&corev1.ConfigMap{}, child.ToOwner()).Complete(r)
}

// install creates the object of the Stack and reports it; the function own sets the owner
// of the object.
func (r *reconciler) install(ctx context.Context, s *Stack, own func(*corev1.ConfigMap)) error {
	o := installed(s)
	there, err := r.Ensure(ctx, s, o, func() {
		o.Data = map[string]string{"content": s.Spec.Content}
		child.Mark(o, s)
		own(o)
	})
	if err != nil || !there || s.Status.Installed {
		return err
	}
	s.Status.Installed = true
	return r.Status().Update(ctx, s)
}

func installed(s *Stack) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Spec.Target, Name: s.Name + "-installed"}}
}

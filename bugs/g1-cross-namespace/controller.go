// Package g1 is class G1: an owner reference that leads out of the namespace, to
// where the garbage collector finds no owner.
package g1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is what a person wants.
type Spec struct {
	Target  string `json:"target,omitempty"`
	Content string `json:"content,omitempty"`
}

// Status is what there is.
type Status struct {
	Installed bool `json:"installed,omitempty"`
}

// Stack is something that is installed into another namespace.
type Stack = object.Object[Spec, Status]

type reconciler struct {
	client.Client
	live client.Reader
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Stack")
	base := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	var r reconcile.Reconciler = &byReference{base}
	if repaired {
		r = &byFinalizer{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("g1").For(&Stack{}).Watches(&corev1.ConfigMap{}, child.ToOwner()).Complete(r)
}

// install makes what the Stack installs and reports it; own says whose it is.
func (r *reconciler) install(ctx context.Context, s *Stack, own func(*corev1.ConfigMap)) error {
	o := installed(s)
	err := child.Ensure(ctx, r.Client, o, func() error {
		o.Data = map[string]string{"content": s.Spec.Content}
		child.Mark(o, s)
		own(o)
		return nil
	})
	if err != nil || s.Status.Installed {
		return err
	}
	s.Status.Installed = true
	return r.Status().Update(ctx, s)
}

func installed(s *Stack) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Spec.Target, Name: s.Name + "-installed"}}
}

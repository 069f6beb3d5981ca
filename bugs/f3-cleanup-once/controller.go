// Package f3 has the bug of class F3: the cleanup can be done only once, so the
// finalizer stays forever if the controller is interrupted right after the cleanup.
package f3

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Grants string `json:"grants,omitempty"`
}

// Status is the observed state.
type Status struct {
	Ready bool `json:"ready,omitempty"`
}

// Account is a role in a database. Here, a ConfigMap stands for the role.
type Account = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/f3"

type reconciler struct {
	child.Keeper
	// drop drops the role, and reports whether it is gone.
	drop func(ctx context.Context, a *Account) (gone bool, err error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Account")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	r.drop = r.dropOnce
	if repaired {
		r.drop = r.dropOrDropped
	}
	return ctrl.NewControllerManagedBy(mgr).Named("f3").For(&Account{}).Watches(&corev1.ConfigMap{}, child.ToOwner()).Complete(r)
}

// Reconcile creates the role of an Account, or drops it when the Account is being
// deleted.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var a Account
	if err := r.Live.Get(ctx, req.NamespacedName, &a); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !a.DeletionTimestamp.IsZero() {
		return r.finish(ctx, &a)
	}
	if controllerutil.AddFinalizer(&a, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &a)
	}
	role := role(&a)
	there, err := r.Ensure(ctx, &a, role, func() {
		role.Data = map[string]string{"grants": a.Spec.Grants}
		child.Mark(role, &a)
	})
	if err != nil || !there || a.Status.Ready {
		return ctrl.Result{}, err
	}
	a.Status.Ready = true
	return ctrl.Result{}, r.Status().Update(ctx, &a)
}

func (r *reconciler) finish(ctx context.Context, a *Account) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(a, finalizer) {
		return ctrl.Result{}, nil
	}
	gone, err := r.drop(ctx, a)
	if err != nil || !gone {
		return ctrl.Result{}, err // the deletion will cause an event
	}
	controllerutil.RemoveFinalizer(a, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, a))
}

func role(a *Account) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name + "-role"}}
}

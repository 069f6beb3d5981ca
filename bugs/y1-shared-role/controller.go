// Package y1 reconciles guards, each with a ClusterRole that lets it read a kind. Class Y1: the
// cluster-scoped children of two resources have the same name.
package y1

import (
	"context"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

const (
	// finalizer delays the deletion of a guard until its role is gone. A namespaced object cannot own
	// the role.
	finalizer = "bugs.koboshi.dev/role"
	// madeFor is the label of a role with the guard for which it was made, as NAMESPACE.NAME.
	madeFor = "bugs.koboshi.dev/guard"
)

// Spec is the desired state.
type Spec struct {
	Resource string `json:"resource"`
}

// Status is the observed state.
type Status struct {
	Ready bool `json:"ready,omitempty"`
}

// Guard is the kind that is reconciled.
type Guard = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in the
// names of the roles.
type reconciler struct {
	child.Keeper
	roleName func(guard *Guard) string
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Guard")
	r := &reconciler{Keeper: child.NewKeeper(mgr), roleName: byName}
	if repaired {
		r.roleName = byNamespaceAndName
	}
	return ctrl.NewControllerManagedBy(mgr).Named("y1").For(&Guard{}).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(guardOf)).Complete(r)
}

// guardOf returns the guard for which a role was made.
func guardOf(_ context.Context, role client.Object) []reconcile.Request {
	namespace, name, found := strings.Cut(role.GetLabels()[madeFor], ".")
	if !found {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

// Reconcile makes the role of a guard.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var guard Guard
	if err := r.Live.Get(ctx, req.NamespacedName, &guard); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.roleName(&guard)}}
	if !guard.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.release(ctx, &guard, role)
	}
	if controllerutil.AddFinalizer(&guard, finalizer) {
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &guard))
	}
	there, err := r.Ensure(ctx, &guard, role, func() {
		if !strings.HasSuffix(role.Labels[madeFor], "."+guard.Name) {
			role.Labels = map[string]string{madeFor: guard.Namespace + "." + guard.Name}
		}
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{guard.Spec.Resource}, Verbs: []string{"get"}}}
	})
	if err != nil || !there || guard.Status.Ready {
		return ctrl.Result{}, err
	}
	guard.Status.Ready = true
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &guard))
}

// release deletes the role, and then lets the guard go.
func (r *reconciler) release(ctx context.Context, guard *Guard, role *rbacv1.ClusterRole) error {
	gone, err := r.Remove(ctx, role, func(client.Object) bool { return true })
	if err != nil || !gone || !controllerutil.RemoveFinalizer(guard, finalizer) {
		return err
	}
	return client.IgnoreNotFound(r.Update(ctx, guard))
}

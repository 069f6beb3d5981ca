// Package x9 reconciles routers, each with a ConfigMap, and with a Role for its plug-in if that is switched
// on. Class X9: for one value of a field, the permissions of the controller do not suffice.
package x9

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Size   int64 `json:"size"`
	Plugin bool  `json:"plugin,omitempty"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Router is the kind that is reconciled.
type Router = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in what
// they grant to the plug-in.
type reconciler struct {
	child.Keeper
	verbs []string
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Router")
	r := &reconciler{Keeper: child.NewKeeper(mgr), verbs: more}
	if repaired {
		r.verbs = held
	}
	return ctrl.NewControllerManagedBy(mgr).Named("x9").
		For(&Router{}).Owns(&corev1.ConfigMap{}).Owns(&rbacv1.Role{}).Complete(r)
}

// Reconcile writes the children and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var router Router
	if err := r.Live.Get(ctx, req.NamespacedName, &router); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !router.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = router.Namespace, router.Name
	done, err := r.Ensure(ctx, &router, m, func() {
		m.Data = map[string]string{"size": strconv.FormatInt(router.Spec.Size, 10)}
		r.Own(&router, m)
	})
	if err == nil && done {
		done, err = r.plugin(ctx, &router)
	}
	if err != nil || !done || router.Status.Generation == router.Generation {
		return ctrl.Result{}, err
	}
	router.Status.Generation = router.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &router))
}

// plugin makes the Role of the plug-in, or removes it.
func (r *reconciler) plugin(ctx context.Context, router *Router) (bool, error) {
	role := &rbacv1.Role{}
	role.Namespace, role.Name = router.Namespace, router.Name
	if !router.Spec.Plugin {
		return r.Remove(ctx, role, child.OwnedBy(router))
	}
	return r.Ensure(ctx, router, role, func() {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: r.verbs}}
		r.Own(router, role)
	})
}

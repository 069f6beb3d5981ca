package g1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

const finalizer = "bugs.koboshi.dev/g1"

// byFinalizer recognizes the installed object by its labels, and deletes it without the garbage
// collector.
type byFinalizer struct{ *reconciler }

// Reconcile installs a Stack, or uninstalls it when it is being deleted.
func (r *byFinalizer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s Stack
	if err := r.Live.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return r.uninstall(ctx, &s)
	}
	if controllerutil.AddFinalizer(&s, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &s)
	}
	return ctrl.Result{}, r.install(ctx, &s, func(*corev1.ConfigMap) {})
}

func (r *byFinalizer) uninstall(ctx context.Context, s *Stack) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s, finalizer) {
		return ctrl.Result{}, nil
	}
	gone, err := r.Remove(ctx, installed(s), child.MarkedBy(s))
	if err != nil || !gone {
		return ctrl.Result{}, err // the deletion will cause an event
	}
	controllerutil.RemoveFinalizer(s, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, s))
}

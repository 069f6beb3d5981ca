package f4

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// stops creates nothing for an Ensemble that is being deleted. It only cleans up.
type stops struct{ *reconciler }

// Reconcile runs an Ensemble, or cleans up if the Ensemble is being deleted.
func (r *stops) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var e Ensemble
	if err := r.Live.Get(ctx, req.NamespacedName, &e); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !e.DeletionTimestamp.IsZero() {
		if controllerutil.ContainsFinalizer(&e, finalizer) {
			return r.finish(ctx, &e)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&e, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &e)
	}
	return ctrl.Result{}, r.run(ctx, &e)
}

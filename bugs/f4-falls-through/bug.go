package f4

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// fallsThrough has the bug of pravega/zookeeper-operator#410. Once the finalizer is
// removed, an Ensemble with a deletion timestamp is treated like any other. If another
// finalizer still holds the Ensemble, its configuration is created again, and nothing will
// delete that configuration.
type fallsThrough struct{ *reconciler }

// Reconcile runs an Ensemble, and cleans up when the Ensemble is being deleted.
func (r *fallsThrough) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var e Ensemble
	if err := r.Live.Get(ctx, req.NamespacedName, &e); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if e.DeletionTimestamp.IsZero() {
		if controllerutil.AddFinalizer(&e, finalizer) {
			return ctrl.Result{}, r.Update(ctx, &e)
		}
	} else if controllerutil.ContainsFinalizer(&e, finalizer) {
		return r.finish(ctx, &e)
	}
	return ctrl.Result{}, r.run(ctx, &e)
}

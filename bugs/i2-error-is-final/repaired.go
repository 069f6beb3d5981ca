package i2

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// retries returns the error, so that the reconcile is retried at growing intervals.
type retries struct{ *reconciler }

// Reconcile creates the hosts.
func (r *retries) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	i, err := r.get(ctx, req)
	if err != nil || i == nil {
		return ctrl.Result{}, err
	}
	if there, err := r.ensureHosts(ctx, i); err != nil || !there {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, i, "Completed")
}

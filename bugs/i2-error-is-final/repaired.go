package i2

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// retries returns an error, which is tried again with growing intervals.
type retries struct{ *reconciler }

// Reconcile makes the hosts.
func (r *retries) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	i, err := r.get(ctx, req)
	if err != nil || i == nil {
		return ctrl.Result{}, err
	}
	if err := r.ensureHosts(ctx, i); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, i, "Completed")
}

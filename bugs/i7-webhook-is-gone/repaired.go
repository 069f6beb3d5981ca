package i7

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// patient tries again, at growing intervals, until the webhook is back.
type patient struct{ *reconciler }

// Reconcile runs the Task.
func (r *patient) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p, err := r.get(ctx, req)
	if err != nil || p == nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.finish(ctx, p, r.ensureTask(ctx, p))
}

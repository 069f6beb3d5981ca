package i9

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// repeats tries again until the notification succeeds.
type repeats struct{ *reconciler }

// Reconcile notifies the keeper, and records that only if it succeeds.
func (r *repeats) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lantern, err := r.get(ctx, req)
	if err != nil || lantern == nil {
		return ctrl.Result{}, err
	}
	if err := r.notify(ctx, lantern); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, lantern, nil)
}

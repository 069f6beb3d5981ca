package i9

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// repeats tells the keeper until it succeeds.
type repeats struct{ *reconciler }

// Reconcile tells the keeper about the oil.
func (r *repeats) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lantern, err := r.get(ctx, req)
	if err != nil || lantern == nil {
		return ctrl.Result{}, err
	}
	if err := r.tell(ctx, lantern); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, lantern, nil)
}

package i5

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// waits tries again, at growing intervals, until the quota has room.
type waits struct{ *reconciler }

// Reconcile creates the runners.
func (r *waits) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	set, err := r.get(ctx, req)
	if err != nil || set == nil {
		return ctrl.Result{}, err
	}
	if set.Status.Phase == "Failed" && set.Status.Generation == set.Generation {
		return ctrl.Result{}, nil
	}
	there, err := r.ensureRunners(ctx, set)
	if apierrors.IsInvalid(err) {
		return ctrl.Result{}, r.report(ctx, set, "Failed")
	}
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, set, "Running")
}

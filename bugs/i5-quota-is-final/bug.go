package i5

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// gives has the bug of actions/actions-runner-controller#3629. A Forbidden error is treated like an
// invalid object, which no retry can repair, so the resource is marked as failed for ever. But the
// quota has room again as soon as another object is gone.
type gives struct{ *reconciler }

// Reconcile creates the runners, or gives up.
func (r *gives) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	set, err := r.get(ctx, req)
	if err != nil || set == nil {
		return ctrl.Result{}, err
	}
	if set.Status.Phase == "Failed" && set.Status.Generation == set.Generation {
		return ctrl.Result{}, nil
	}
	there, err := r.ensureRunners(ctx, set)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return ctrl.Result{}, r.report(ctx, set, "Failed")
	}
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, set, "Running")
}

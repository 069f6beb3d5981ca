package i2

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// aborts is the bug of Altinity/clickhouse-operator#2026: any error of the API
// server, be it of half a second, ends the work on this generation, and the phase
// Aborted is kept.
type aborts struct{ *reconciler }

// Reconcile makes the hosts, or gives up.
func (r *aborts) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	i, err := r.get(ctx, req)
	if err != nil || i == nil {
		return ctrl.Result{}, err
	}
	if i.Status.Phase == "Aborted" && i.Status.Generation == i.Generation {
		return ctrl.Result{}, nil
	}
	err = r.ensureHosts(ctx, i)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return ctrl.Result{}, err // the cache lags
	}
	if err != nil {
		return ctrl.Result{}, r.report(ctx, i, "Aborted")
	}
	return ctrl.Result{}, r.report(ctx, i, "Completed")
}

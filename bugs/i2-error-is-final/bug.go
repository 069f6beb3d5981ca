package i2

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// aborts has the bug of Altinity/clickhouse-operator#2026. Any error from the API server,
// even one that lasts only half a second, ends the work on this generation, and the phase
// stays Aborted.
type aborts struct{ *reconciler }

// Reconcile creates the hosts, or gives up.
func (r *aborts) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	i, err := r.get(ctx, req)
	if err != nil || i == nil {
		return ctrl.Result{}, err
	}
	if i.Status.Phase == "Aborted" && i.Status.Generation == i.Generation {
		return ctrl.Result{}, nil
	}
	there, err := r.ensureHosts(ctx, i)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return ctrl.Result{}, err // the cache is out of date, so try again
	}
	if err != nil {
		return ctrl.Result{}, r.report(ctx, i, "Aborted")
	}
	if !there {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.report(ctx, i, "Completed")
}

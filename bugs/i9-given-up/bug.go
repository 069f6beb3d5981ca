package i9

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// givesUp has the bug of hashicorp/vault-secrets-operator@13ef40c. It notifies the keeper only once. If that fails,
// a condition reports it, but the status says that the work is done.
type givesUp struct{ *reconciler }

// Reconcile notifies the keeper, and records the result.
func (r *givesUp) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lantern, err := r.get(ctx, req)
	if err != nil || lantern == nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, lantern, r.notify(ctx, lantern))
}

package i9

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// givesUp has the bug of hashicorp/vault-secrets-operator@13ef40c. It tells the keeper only once. A condition
// reports an error, but the lantern counts as done.
type givesUp struct{ *reconciler }

// Reconcile tells the keeper about the oil.
func (r *givesUp) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lantern, err := r.get(ctx, req)
	if err != nil || lantern == nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, lantern, r.tell(ctx, lantern))
}

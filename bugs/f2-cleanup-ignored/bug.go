package f2

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// bestEffort has the bug of operator-framework/helm-operator-plugins#378 and
// operator-framework/operator-sdk#3407: a failure to uninstall is logged, and the
// Release is released. Nothing ever deletes what is left.
func (r *reconciler) bestEffort(ctx context.Context, rel *Release) (bool, error) {
	if err := r.Delete(ctx, installed(rel)); err != nil {
		ctrl.LoggerFrom(ctx).Info("uninstalling did not quite succeed", "cause", err.Error())
	}
	return true, nil
}

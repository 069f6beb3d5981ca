package f2

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// bestEffort has the bug of operator-framework/helm-operator-plugins#378 and
// operator-framework/operator-sdk#3407. If uninstalling fails, bestEffort only logs the error, and
// the finalizer is removed anyway. Nothing ever deletes the objects that are left.
func (r *reconciler) bestEffort(ctx context.Context, rel *Release) (bool, error) {
	if err := r.Delete(ctx, installed(rel)); err != nil {
		ctrl.LoggerFrom(ctx).Info("uninstalling did not succeed completely", "cause", err.Error())
	}
	return true, nil
}

package f2

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// asFarAsItGoes is the bug of operator-framework/helm-operator-plugins#378, and of
// operator-framework/operator-sdk#3407: that something could not be uninstalled is
// logged, and the Release goes; nobody comes back for what is left.
func (r *reconciler) asFarAsItGoes(ctx context.Context, rel *Release) (bool, error) {
	if err := r.Delete(ctx, installed(rel)); err != nil {
		ctrl.LoggerFrom(ctx).Info("uninstalling did not quite succeed", "cause", err.Error())
	}
	return true, nil
}

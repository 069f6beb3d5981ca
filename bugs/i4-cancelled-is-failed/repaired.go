package i4

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// resumes reports nothing about work that was interrupted, so the next instance continues it.
type resumes struct{ *reconciler }

// Reconcile installs the components.
func (r *resumes) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.get(ctx, req)
	if err != nil || o == nil {
		return ctrl.Result{}, err
	}
	if there, err := r.install(ctx, o); err != nil || !there {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, o, "Ready")
}

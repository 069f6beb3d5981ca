package e3

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// restless is the bug of konflux-ci/konflux-ci#5874 and posit-dev/team-operator#128:
// it says that it is progressing when it begins and that it is not when it ends,
// each time, and For has no predicate, so that both are reasons to begin again.
type restless struct{ *reconciler }

// Reconcile makes the page between two reports.
func (r *restless) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.get(ctx, req)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	s.Status.Progressing = true
	if err := r.Status().Update(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.ensurePage(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	s.Status = Status{Title: s.Spec.Title}
	return ctrl.Result{}, r.Status().Update(ctx, s)
}

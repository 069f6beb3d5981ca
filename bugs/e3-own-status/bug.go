package e3

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// restless has the bug of konflux-ci/konflux-ci#5874 and posit-dev/team-operator#128.
// Each reconcile reports at its start that the Site is progressing, and at its end that
// the Site is not progressing. The watch on Sites has no predicate, so each of these two
// reports starts another reconcile.
type restless struct{ *reconciler }

// Reconcile creates the page. It writes one report before it creates the page, and another
// one afterwards.
func (r *restless) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.get(ctx, req)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	s.Status.Progressing = true
	if err := r.Status().Update(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if there, err := r.ensurePage(ctx, s); err != nil || !there {
		return ctrl.Result{}, err
	}
	s.Status = Status{Title: s.Spec.Title}
	return ctrl.Result{}, r.Status().Update(ctx, s)
}

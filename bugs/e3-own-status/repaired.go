package e3

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// calm reports only changes, and a report does not wake it.
type calm struct{ *reconciler }

// Reconcile creates the page and reports it once.
func (r *calm) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.get(ctx, req)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if there, err := r.ensurePage(ctx, s); err != nil || !there {
		return ctrl.Result{}, err
	}
	if s.Status == (Status{Title: s.Spec.Title}) {
		return ctrl.Result{}, nil
	}
	s.Status = Status{Title: s.Spec.Title}
	return ctrl.Result{}, r.Status().Update(ctx, s)
}

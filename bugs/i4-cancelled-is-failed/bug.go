package i4

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// fails has the bug of kyma-incubator/reconciler#313. When the reconciler is stopped, for example by
// a rollout, the context of its work is canceled, and the state of the operation becomes Error. The
// state is written with another context, so it arrives. The next instance takes it for the result.
type fails struct{ *reconciler }

// Reconcile installs the components, or gives up when the controller exits.
func (r *fails) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.get(ctx, req)
	if err != nil || o == nil {
		return ctrl.Result{}, err
	}
	if o.Status.State == "Error" && o.Status.Generation == o.Generation {
		return ctrl.Result{}, nil
	}
	there, err := r.install(ctx, o)
	if err != nil && ctx.Err() != nil {
		return ctrl.Result{}, r.report(context.WithoutCancel(ctx), o, "Error")
	}
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, o, "Ready")
}

package i7

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// attempts is the number of attempts at a Task, and pause the time between them.
const (
	attempts = 5
	pause    = 10 * time.Millisecond
)

// limited has the bug of mariadb-operator/mariadb-operator#325. While the operator's own webhook restarts,
// the API server answers its writes with an internal error. A few attempts are not enough, and the
// failure is recorded for ever, although the webhook is back a moment later.
type limited struct{ *reconciler }

// Reconcile runs the Task, or gives up.
func (r *limited) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p, err := r.get(ctx, req)
	if err != nil || p == nil {
		return ctrl.Result{}, err
	}
	err = r.ensureTask(ctx, p)
	for n := 1; apierrors.IsInternalError(err); n++ {
		if n == attempts {
			return ctrl.Result{}, r.report(ctx, p, "Failed")
		}
		select {
		case <-ctx.Done():
			return ctrl.Result{}, ctx.Err()
		case <-time.After(pause):
		}
		err = r.ensureTask(ctx, p)
	}
	return ctrl.Result{}, r.finish(ctx, p, err)
}

package v1

import "context"

// atOnce scales the Deployment to the load that was measured last, and then measures the load again.
//
// WRONG: after a restart, nothing has been measured, so the Deployment is scaled to zero, and only the
// next write scales it up again. All Pods end. In jaegertracing/jaeger-operator#963, each restart of the
// operator scaled a Deployment down to one replica, and in kedacore/keda#1850, a metric that was not
// available counted as zero.
func atOnce(ctx context.Context, r *reconciler, app *App) (bool, error) {
	if there, err := r.ensure(ctx, app, r.load(app)); err != nil || !there {
		return false, err
	}
	r.measure(app)
	return r.ensure(ctx, app, r.load(app))
}

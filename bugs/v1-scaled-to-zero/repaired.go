package v1

import "context"

// onceMeasured measures the load, and then scales the Deployment.
//
// RIGHT: the number of replicas never depends on what the process has seen before.
func onceMeasured(ctx context.Context, r *reconciler, app *App) (bool, error) {
	r.measure(app)
	return r.ensure(ctx, app, r.load(app))
}

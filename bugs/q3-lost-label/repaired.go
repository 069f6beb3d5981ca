package q3

import "context"

// labelFirst labels the Node, and then reports the pool as done.
//
// RIGHT: the label is compared in every reconcile, whatever the status says.
func labelFirst(ctx context.Context, r *reconciler, pool *Pool) error {
	if err := r.label(ctx, pool); err != nil {
		return err
	}
	return r.report(ctx, pool)
}

package o6

import "context"

// removedFirst removes the old ConfigMap, and then sets the mark.
//
// RIGHT: the mark is set only when there is nothing left to do, and the removal can be repeated.
func (r *reconciler) removedFirst(ctx context.Context, booth *Booth) error {
	if err := r.removeOld(ctx, booth); err != nil {
		return err
	}
	return r.mark(ctx, booth)
}

package h1

import "context"

// giveWay returns a conflict, so that all is read and decided again.
func (r *reconciler) giveWay(ctx context.Context, a *Assignment) error {
	return r.Update(ctx, a)
}

package h1

import "context"

// giveWay returns a conflict as an error, so that the controller reads and decides
// everything again.
func (r *reconciler) giveWay(ctx context.Context, a *Assignment) error {
	return r.Update(ctx, a)
}

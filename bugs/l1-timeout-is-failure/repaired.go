package l1

import "context"

// next creates the request of one revision only, under a name that follows from it. If
// there is no answer, it tries the same again. If the request exists by then, the cache
// will soon have it.
func (r *reconciler) next(ctx context.Context, c *Certificate) error {
	return r.create(ctx, c, c.Status.Revision+1)
}

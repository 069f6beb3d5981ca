package l1

import "context"

// next creates only the request of the next revision, under a name that is derived from the
// revision. If there is no response, it tries to create the same request again. If the
// request already exists, the cache will have it soon.
func (r *reconciler) next(ctx context.Context, c *Certificate) error {
	return r.create(ctx, c, c.Status.Revision+1)
}

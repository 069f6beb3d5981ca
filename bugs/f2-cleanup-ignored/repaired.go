package f2

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// untilItIsGone keeps the Release until the API server says that there is nothing
// left of it.
func (r *reconciler) untilItIsGone(ctx context.Context, rel *Release) (bool, error) {
	return child.Remove(ctx, r.Client, r.live, installed(rel), child.MarkedBy(rel))
}

package f2

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// untilItIsGone keeps the Release until the API server reports that nothing is left of
// it.
func (r *reconciler) untilItIsGone(ctx context.Context, rel *Release) (bool, error) {
	return r.Remove(ctx, installed(rel), child.MarkedBy(rel))
}

package f3

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// dropOrDropped succeeds if there is no role, even if it was dropped earlier.
func (r *reconciler) dropOrDropped(ctx context.Context, a *Account) (bool, error) {
	return r.Remove(ctx, role(a), child.MarkedBy(a))
}

package f3

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// dropOrDropped drops the role, and also succeeds if there is no role to drop.
func (r *reconciler) dropOrDropped(ctx context.Context, a *Account) (bool, error) {
	return r.Remove(ctx, role(a), child.MarkedBy(a))
}

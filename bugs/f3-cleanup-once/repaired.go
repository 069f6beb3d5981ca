package f3

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// dropOrDropped is content if there is no role, whoever dropped it.
func (r *reconciler) dropOrDropped(ctx context.Context, a *Account) (bool, error) {
	return child.Remove(ctx, r.Client, r.live, role(a), child.MarkedBy(a))
}

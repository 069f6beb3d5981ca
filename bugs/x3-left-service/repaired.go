package x3

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// removed deletes the Service of the metrics.
//
// RIGHT: what the spec does not ask for is removed in every reconcile.
func (r *reconciler) removed(ctx context.Context, house *Lighthouse) (bool, error) {
	return r.Remove(ctx, metrics(house), child.OwnedBy(house))
}

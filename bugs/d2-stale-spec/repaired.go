package d2

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// repair makes the controller read a Cluster from the API server, which does not lag,
// so that no decision rests on an old spec. It deletes only a proxy that the Cluster
// owns, in the state that it has read.
func (r *reconciler) repair() {
	r.clusters = r.Live
	r.stopProxy = func(ctx context.Context, c *Cluster) error {
		_, err := r.Remove(ctx, proxy(c), child.OwnedBy(c))
		return err // the deletion is an event
	}
}

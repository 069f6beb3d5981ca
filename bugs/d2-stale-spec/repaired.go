package d2

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// repair makes the controller read a Cluster directly from the API server, so that no
// decision is based on an old spec. The controller deletes the proxy only if the Cluster
// owns the proxy and the proxy has not changed since it was read.
func (r *reconciler) repair() {
	r.clusters = r.Live
	r.stopProxy = func(ctx context.Context, c *Cluster) error {
		_, err := r.Remove(ctx, proxy(c), child.OwnedBy(c))
		return err // the deletion will cause an event
	}
}

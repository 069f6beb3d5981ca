package d2

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// repair makes the controller read a Cluster from the API server, which does not
// lag, so that no decision rests on an old spec; and it deletes only what is the
// Cluster's own, as it has seen it.
func (r *reconciler) repair(live client.Reader) {
	r.clusters = live
	r.stopProxy = func(ctx context.Context, c *Cluster) error {
		_, err := child.Remove(ctx, r.Client, live, proxy(c), child.OwnedBy(c.UID))
		return err // that it is gone is an event
	}
}

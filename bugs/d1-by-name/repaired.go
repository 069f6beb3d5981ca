package d1

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// repair makes the controller read a Broker from the API server, which does not
// lag, and delete only servers whose owner is this very Broker, with their UID as
// a precondition.
func (r *reconciler) repair(live client.Reader) {
	r.brokers = live
	r.stop = func(ctx context.Context, b *Broker) (bool, error) {
		return child.Remove(ctx, r.Client, live, servers(b), child.OwnedBy(b.UID))
	}
}

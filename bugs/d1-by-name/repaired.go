package d1

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// repair makes the controller read a Broker directly from the API server, which returns the
// latest state. The controller then deletes only servers that this very Broker owns, with
// their UID as a precondition.
func (r *reconciler) repair() {
	r.brokers = r.Live
	r.stop = func(ctx context.Context, b *Broker) (bool, error) {
		return r.Remove(ctx, servers(b), child.OwnedBy(b))
	}
}

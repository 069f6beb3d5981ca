package b4

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// byClaims brings each claim to the size that is wanted, and then deletes the set
// if it has another one.
//
// RIGHT: each part is measured at itself, so it does not matter where it died. That
// is what rabbitmq/cluster-operator#838 does.
func byClaims(ctx context.Context, k keep.Keeper, broker *Broker) (bool, error) {
	if all, err := claims(ctx, k, broker, true); err != nil || !all {
		return false, err
	}
	set := setOf(broker)
	if err := k.Live.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	if set.Spec.Size == broker.Spec.Size || !set.DeletionTimestamp.IsZero() || !keep.Owned(broker, set) {
		return true, nil
	}
	if current, err := k.Current(ctx, broker); err != nil || !current {
		return false, err
	}
	return false, k.Remove(ctx, set) // its end is an event
}

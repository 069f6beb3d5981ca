package b4

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// byClaims brings each claim to the desired size, and then deletes the set if its size is
// different.
//
// RIGHT: as in the fix rabbitmq/cluster-operator#838, each part is compared with its own
// desired state, so it does not matter when the process died.
func byClaims(ctx context.Context, k child.Keeper, broker *Broker) (bool, error) {
	if all, err := claims(ctx, k, broker, true); err != nil || !all {
		return false, err
	}
	set := setOf(broker)
	if err := k.Live.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	if set.Spec.Size == broker.Spec.Size || !set.DeletionTimestamp.IsZero() || !child.OwnedBy(broker)(set) {
		return true, nil
	}
	if current, err := k.Current(ctx, broker); err != nil || !current {
		return false, err
	}
	_, err := k.Remove(ctx, set, child.OwnedBy(broker))
	return false, err // the deletion will cause an event
}

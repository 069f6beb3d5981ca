package b4

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// bySet deletes the set if it is too small, and then enlarges the claims.
//
// WRONG: if the process dies after the deletion, the small set is gone, and nothing else
// shows that the claims must be enlarged. A set of the new size is created, which looks
// right, but the claims keep their size. The bug is taken from
// rabbitmq/cluster-operator#782.
func bySet(ctx context.Context, k child.Keeper, broker *Broker) (bool, error) {
	set := setOf(broker)
	err := k.Get(ctx, client.ObjectKeyFromObject(set), set)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err != nil || set.Spec.Size >= broker.Spec.Size {
		return claims(ctx, k, broker, false)
	}
	if _, err := k.Remove(ctx, set, child.OwnedBy(broker)); err != nil {
		return false, err
	}
	_, err = claims(ctx, k, broker, true)
	return false, err
}

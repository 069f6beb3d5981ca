package b4

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// bySet enlarges the claims if the set is too small, after it has deleted the set.
//
// WRONG: if it dies after that, there is no set that is too small any more. One of
// the new size is made, which says that all is well, and the claims stay as they
// are. Taken from rabbitmq/cluster-operator#782.
func bySet(ctx context.Context, k keep.Keeper, broker *Broker) (bool, error) {
	set := setOf(broker)
	err := k.Get(ctx, client.ObjectKeyFromObject(set), set)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err != nil || set.Spec.Size >= broker.Spec.Size {
		return claims(ctx, k, broker, false)
	}
	if err := k.Remove(ctx, set); err != nil {
		return false, err
	}
	_, err = claims(ctx, k, broker, true)
	return false, err
}

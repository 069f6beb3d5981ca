package d1

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteByName has the bug of rabbitmq/cluster-operator#648 and
// pravega/zookeeper-operator#312: after a restart, an API server that lags shows a
// Broker that was deleted earlier, with its deletion timestamp. The servers are deleted
// by name, and those of that name belong to the Broker that was created since.
func (r *reconciler) deleteByName(ctx context.Context, b *Broker) (bool, error) {
	return true, client.IgnoreNotFound(r.Delete(ctx, servers(b)))
}

package d1

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteByName is the bug of rabbitmq/cluster-operator#648, and of
// pravega/zookeeper-operator#312: a restart in front of an API server that lags
// shows the Broker that was deleted earlier, with its deletion timestamp. The
// servers are found by name, and under that name run those of the Broker that was
// created since.
func (r *reconciler) deleteByName(ctx context.Context, b *Broker) (bool, error) {
	return true, client.IgnoreNotFound(r.Delete(ctx, servers(b)))
}

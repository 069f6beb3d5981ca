package d1

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteByName has the bug of rabbitmq/cluster-operator#648 and
// pravega/zookeeper-operator#312. After a restart, a lagging API server shows a Broker
// that was deleted earlier, with its deletion timestamp. deleteByName then deletes the
// servers by name, but by now the servers of that name belong to a newer Broker.
func (r *reconciler) deleteByName(ctx context.Context, b *Broker) (bool, error) {
	return true, client.IgnoreNotFound(r.Delete(ctx, servers(b)))
}

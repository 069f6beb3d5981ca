package d2

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteOnCachedSpec has the bug K8SPXC-725, described in
// percona/percona-xtradb-cluster-operator#986: the proxy was switched off once, and on
// again later. After a restart, an API server that lags shows the spec of the time in
// between, and a working proxy is deleted. It is created again as soon as the cache has
// caught up, so the final state looks as if nothing had happened.
func (r *reconciler) deleteOnCachedSpec(ctx context.Context, c *Cluster) error {
	return client.IgnoreNotFound(r.Delete(ctx, proxy(c)))
}

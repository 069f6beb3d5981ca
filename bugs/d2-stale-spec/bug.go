package d2

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteOnCachedSpec is the bug of K8SPXC-725, told in
// percona/percona-xtradb-cluster-operator#986: the proxy was switched off once and
// on again later. A restart in front of an API server that lags shows the spec of
// the time between, and a proxy that works is deleted. It is made again as soon as
// the cache has caught up, so the end looks as if nothing had been.
func (r *reconciler) deleteOnCachedSpec(ctx context.Context, c *Cluster) error {
	return client.IgnoreNotFound(r.Delete(ctx, proxy(c)))
}

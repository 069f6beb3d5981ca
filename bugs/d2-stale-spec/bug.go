package d2

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteOnCachedSpec has the bug K8SPXC-725, described in
// percona/percona-xtradb-cluster-operator#986. The proxy was turned off, and later it was
// turned on again. After a restart, a lagging API server shows the spec from the time in
// between, so a working proxy is deleted. It is created again as soon as the cache has
// caught up, so the final state looks as if nothing had happened.
func (r *reconciler) deleteOnCachedSpec(ctx context.Context, c *Cluster) error {
	return client.IgnoreNotFound(r.Delete(ctx, proxy(c)))
}

package d2

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteOnCachedSpec has the bug K8SPXC-725, described in
// percona/percona-xtradb-cluster-operator#986: the user turned the proxy off, and some time
// later turned it on again. After a restart, a lagging API server shows the spec in which
// the proxy is off, so a working proxy is deleted. The proxy is created again as soon as
// the cache has caught up, so the final state looks as if nothing had happened.
func (r *reconciler) deleteOnCachedSpec(ctx context.Context, c *Cluster) error {
	return client.IgnoreNotFound(r.Delete(ctx, proxy(c)))
}

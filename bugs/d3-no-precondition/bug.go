package d3

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteByName has the bug of kubernetes-sigs/lws (commit 8b6ef0c: a stale worker deletes
// the new leader) and llm-d-incubation/llm-d-fast-model-actuation#461. While the cache
// still has the old leader, a new leader already has the same name on the server, so the
// deletion by name hits the new leader.
func (r *reconciler) deleteByName(ctx context.Context, leader *corev1.ConfigMap) error {
	return client.IgnoreNotFound(r.Delete(ctx, leader))
}

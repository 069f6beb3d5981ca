package d3

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteByName has the bug of kubernetes-sigs/lws (commit 8b6ef0c: a stale worker
// deletes the new leader) and llm-d-incubation/llm-d-fast-model-actuation#461. It deletes
// a different object from the one in the cache: while the cache still has the old leader,
// the new leader already has the same name.
func (r *reconciler) deleteByName(ctx context.Context, leader *corev1.ConfigMap) error {
	return client.IgnoreNotFound(r.Delete(ctx, leader))
}

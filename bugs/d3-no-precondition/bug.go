package d3

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteByName has the bug of kubernetes-sigs/lws (commit 8b6ef0c: a stale worker
// deletes the new leader) and llm-d-incubation/llm-d-fast-model-actuation#461: it
// deletes another object than the one that the cache shows. While the cache still has
// the old leader, its replacement has the same name.
func (r *reconciler) deleteByName(ctx context.Context, leader *corev1.ConfigMap) error {
	return client.IgnoreNotFound(r.Delete(ctx, leader))
}

package p1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unlessTheFirstExists has the bug of percona/percona-xtradb-cluster-operator#1043, after a pause:
// if the first object exists with the right content, the controller considers both objects
// finished.
func (r *reconciler) unlessTheFirstExists(ctx context.Context, o *Rollout) (bool, error) {
	var first corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name + "-config"}, &first)
	if err == nil && first.Data["image"] == o.Spec.Image && first.DeletionTimestamp.IsZero() {
		return true, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	return r.both(ctx, o)
}

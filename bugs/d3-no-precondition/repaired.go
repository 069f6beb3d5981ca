package d3

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteAsSeen deletes only the exact object that the cache shows, because UID and
// resourceVersion are preconditions. If a precondition does not hold, the cache is out of
// date, and the deletion fails with a conflict. The controller tries again after a
// conflict, and by then the cache has caught up.
func (r *reconciler) deleteAsSeen(ctx context.Context, leader *corev1.ConfigMap) error {
	uid, version := leader.UID, leader.ResourceVersion
	err := r.Delete(ctx, leader, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return client.IgnoreNotFound(err)
}

package e6

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fromCache reads the same ConfigMaps from the cache of the manager, which has them anyway.
//
// RIGHT: a watch keeps the cache up to date, so a reconcile costs the API server nothing. If the cache
// is not up to date yet, the event that updates it leads to another reconcile.
func (r *reconciler) fromCache(ctx context.Context, namespace string) ([]corev1.ConfigMap, error) {
	var all corev1.ConfigMapList
	err := r.List(ctx, &all, client.InNamespace(namespace))
	return all.Items, err
}

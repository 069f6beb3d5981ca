package e6

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// list reads all ConfigMaps of a namespace in each reconcile, to find those that belong to the census.
//
// WRONG: each time, the API server sends every ConfigMap of the namespace. The work grows with the
// number of ConfigMaps, multiplied by the number of changes. The bug is taken from
// FairwindsOps/goldilocks#689, where the controller listed all Pods of a namespace after each change of
// a Pod. es-operator did the same until zalando-incubator/es-operator#76.
func (r *reconciler) list(ctx context.Context, namespace string) ([]corev1.ConfigMap, error) {
	var all corev1.ConfigMapList
	err := r.Live.List(ctx, &all, client.InNamespace(namespace))
	return all.Items, err
}

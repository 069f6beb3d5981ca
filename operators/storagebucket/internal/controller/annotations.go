package controller

import (
	"cmp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// Annotations of others that people know, and that mean the same here.
const (
	crossplanePaused = "crossplane.io/paused"
	fluxRequestedAt  = "reconcile.fluxcd.io/requestedAt"
)

// paused tells whether all work on the object is to stop.
func paused(o client.Object) bool {
	a := o.GetAnnotations()
	return a[storagev1.AnnotationPaused] == "true" || a[crossplanePaused] == "true"
}

// requestedAt is the token of the last request to look now; empty when there
// has been none.
func requestedAt(o client.Object) string {
	a := o.GetAnnotations()
	return cmp.Or(a[storagev1.AnnotationReconcileRequestedAt], a[fluxRequestedAt])
}

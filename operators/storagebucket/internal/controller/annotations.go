package controller

import (
	"cmp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// These annotations of other projects have the same meaning as the operator's own.
const (
	crossplanePaused = "crossplane.io/paused"
	fluxRequestedAt  = "reconcile.fluxcd.io/requestedAt"
)

// suspension returns the reason why the object is suspended, or "" if it is not.
func suspension(o client.Object, suspended bool) string {
	a := o.GetAnnotations()
	switch {
	case suspended:
		return "spec.suspend is true"
	case deprecatedPause(o):
		return "the annotation " + storagev1.AnnotationPaused + " is true: use spec.suspend instead"
	case a[crossplanePaused] == "true":
		return "the annotation " + crossplanePaused + " is true"
	default:
		return ""
	}
}

// deprecatedPause reports whether the object is paused with the deprecated annotation,
// which spec.suspend has replaced.
func deprecatedPause(o client.Object) bool {
	return o.GetAnnotations()[storagev1.AnnotationPaused] == "true"
}

// requestedAt returns the token of the last request for an immediate probe, or ""
// if there has been none.
func requestedAt(o client.Object) string {
	a := o.GetAnnotations()
	return cmp.Or(a[storagev1.AnnotationReconcileRequestedAt], a[fluxRequestedAt])
}

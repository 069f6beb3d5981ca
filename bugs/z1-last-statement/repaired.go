package z1

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// otherErrors reports whether an error has another reason than the deletion of the namespace.
//
// RIGHT: in a namespace that is being deleted, the statement would be deleted as well. So the cleanup
// goes on without it.
func otherErrors(err error) bool {
	return !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

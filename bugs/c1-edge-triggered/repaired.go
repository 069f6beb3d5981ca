package c1

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compare makes a rollout get the hash whenever it has another one.
//
// RIGHT: what counts is what is, and not how it came to be. Events say only when to
// look.
func (r *reconciler) compare() {
	r.seen = func(_, _ *corev1.ConfigMap) {}
	r.due = func(client.ObjectKey) bool { return true }
	r.did = func(client.ObjectKey) {}
}

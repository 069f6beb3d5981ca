package c1

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compare updates the hash of a rollout whenever the hash differs.
//
// RIGHT: the controller acts on the current state, no matter how it came about. An event
// only determines when the controller checks that state.
func (r *reconciler) compare() {
	r.seen = func(_, _ *corev1.ConfigMap) {}
	r.due = func(client.ObjectKey) bool { return true }
	r.did = func(client.ObjectKey) {}
}

package c1

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compare updates the hash of a rollout whenever it differs.
//
// RIGHT: the controller acts on the current state, however it came about. An event only
// tells it when to look.
func (r *reconciler) compare() {
	r.seen = func(_, _ *corev1.ConfigMap) {}
	r.due = func(client.ObjectKey) bool { return true }
	r.did = func(client.ObjectKey) {}
}

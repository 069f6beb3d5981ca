package c1

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remember updates the hash of a rollout only after an event has shown a change of the
// ConfigMap.
//
// WRONG: a change while the process is down causes no event, and when the process dies, the
// events that it has received are lost. Nothing compares the rollout with the ConfigMap.
// The bug is taken from stakater/Reloader#814. The controller in
// instaclustr/cassandra-operator#398 also reacts to a change only if it sees the change
// happen.
func (r *reconciler) remember() {
	var mu sync.Mutex
	changed := map[client.ObjectKey]bool{}
	r.seen = func(old, new *corev1.ConfigMap) {
		if !maps.Equal(old.Data, new.Data) {
			mu.Lock()
			defer mu.Unlock()
			changed[client.ObjectKeyFromObject(new)] = true
		}
	}
	r.due = func(key client.ObjectKey) bool {
		mu.Lock()
		defer mu.Unlock()
		return changed[key]
	}
	r.did = func(key client.ObjectKey) {
		mu.Lock()
		defer mu.Unlock()
		delete(changed, key)
	}
}

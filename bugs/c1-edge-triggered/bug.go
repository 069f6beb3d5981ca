package c1

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remember makes a rollout get the hash after an event that says that the ConfigMap
// has changed.
//
// WRONG: a change that happens while it is down is no event, and that it has seen
// one is forgotten when it dies. Nothing compares the rollout with the ConfigMap.
// Taken from stakater/Reloader#814; instaclustr/cassandra-operator#398 is another
// controller that has to see something with its own eyes.
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

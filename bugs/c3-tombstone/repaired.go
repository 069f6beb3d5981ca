package c3

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unwrap takes the peer out of what a deletion is told with.
//
// RIGHT: it may be the peer as it was last known, or the peer inside of a
// cache.DeletedFinalStateUnknown.
func (c *controller) unwrap(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if peer, ok := obj.(*unstructured.Unstructured); ok {
		c.queue.Forget(client.ObjectKeyFromObject(peer))
	}
}

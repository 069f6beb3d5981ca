package c3

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unwrap extracts the peer from the object in the event of a deletion.
//
// RIGHT: the object in the event may be the peer itself, or a
// cache.DeletedFinalStateUnknown with the last known state of the peer in it.
func (c *controller) unwrap(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if peer, ok := obj.(*unstructured.Unstructured); ok {
		c.queue.Forget(client.ObjectKeyFromObject(peer))
	}
}

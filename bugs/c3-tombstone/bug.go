package c3

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// castAnyway assumes that the object in the event of a deletion is a peer.
//
// WRONG: if the peer was deleted while the watch was broken, the informer passes a
// cache.DeletedFinalStateUnknown, and the process panics. The bug is taken from
// elastic/beats#23419, giantswarm/aws-operator#183 and antrea-io/antrea#7568.
func (c *controller) castAnyway(obj any) {
	peer := obj.(*unstructured.Unstructured)
	c.queue.Forget(client.ObjectKeyFromObject(peer))
}

package c3

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// castAnyway takes what a deletion is told with for a peer.
//
// WRONG: if the watch broke and the peer was gone when it was listed again, it is a
// cache.DeletedFinalStateUnknown, and the process dies. Taken from
// elastic/beats#23419, giantswarm/aws-operator#183 and antrea-io/antrea#7568.
func (c *controller) castAnyway(obj any) {
	peer := obj.(*unstructured.Unstructured)
	c.queue.Forget(client.ObjectKeyFromObject(peer))
}

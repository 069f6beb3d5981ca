package baseline

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stored holds the fields of a stored object that a reset uses. The fields are empty if the
// object cannot be read, for example because it is encrypted.
type stored struct {
	kind     schema.GroupKind
	owned    bool
	deleting bool // set if the object is being deleted and still has a finalizer
}

// protobufHead is the start of every value that Kubernetes stores as protobuf.
var protobufHead = []byte("k8s\x00")

func readStored(value []byte) stored {
	var object metav1.PartialObjectMetadata
	if encoded, ok := bytes.CutPrefix(value, protobufHead); ok {
		var envelope runtime.Unknown
		// Every kind has its metadata in the first field, as
		// PartialObjectMetadata does.
		if envelope.Unmarshal(encoded) != nil || object.Unmarshal(envelope.Raw) != nil {
			return stored{}
		}
		object.APIVersion, object.Kind = envelope.APIVersion, envelope.Kind
	} else if json.Unmarshal(value, &object) != nil {
		return stored{}
	}
	return stored{
		kind:     object.GroupVersionKind().GroupKind(),
		owned:    len(object.OwnerReferences) > 0,
		deleting: object.DeletionTimestamp != nil,
	}
}

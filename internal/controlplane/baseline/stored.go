package baseline

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stored holds the fields of an object in the store that a reset uses. It is
// empty where the value cannot be read, as when it is encrypted.
type stored struct {
	kind     schema.GroupKind
	owned    bool
	deleting bool // and blocked by a finalizer
}

// protobufHead begins every value that Kubernetes stores as protobuf.
var protobufHead = []byte("k8s\x00")

func readStored(value []byte) stored {
	var object metav1.PartialObjectMetadata
	if encoded, ok := bytes.CutPrefix(value, protobufHead); ok {
		var envelope runtime.Unknown
		// Every kind has its metadata in the first field, as this one has.
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

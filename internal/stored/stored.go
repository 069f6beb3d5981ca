// Package stored reads the history of a store: the values that the API server writes to etcd,
// as changes of objects.
//
//	controlplane.Plane.Follow ──▶ Reader ──▶ changes of objects
package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// Change is a write to the store.
type Change struct {
	Identity
	// Revision is the revision of the store, and the resourceVersion of the object.
	Revision int64
	// Created reports whether no object with this key was known before.
	Created bool
	// Object is the object after the write, with its resourceVersion. It is nil after a
	// deletion.
	Object map[string]any
}

// Identity names an object. An Identity has no version, because the store decides in which version
// it keeps an object.
type Identity struct {
	schema.GroupKind
	Namespace, Name string
}

// Reader turns writes to the store into changes of objects. It is not safe for concurrent use.
type Reader struct {
	upstream runtime.Decoder
	names    map[string]Identity // by key, because a deletion has no value
}

// NewReader returns a reader for a store from which nothing has been read.
func NewReader() *Reader {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return &Reader{upstream: serializer.NewCodecFactory(scheme).UniversalDeserializer(), names: map[string]Identity{}}
}

// Read returns the change that a write of a value under a key made; a deletion has no value. It
// reports false if the key does not belong to an object of the API, as with ranges of ports, or
// if the value cannot be read.
func (r *Reader) Read(key string, value []byte, revision int64) (Change, bool) {
	name, known := r.names[key]
	change := Change{Identity: name, Revision: revision, Created: !known}
	if value == nil {
		delete(r.names, key)
		change.Created = false
		return change, known
	}
	object, err := r.decode(value)
	// The API server stores its own lease as an Endpoints object without a name. This lease is not
	// part of the API, and is renewed every ten seconds.
	if u := (unstructured.Unstructured{Object: object}); err != nil || u.GetName() == "" {
		return Change{}, false
	} else if !known {
		change.Identity = Identity{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()}
		r.names[key] = change.Identity
	}
	stamp(object, revision)
	change.Object = object
	return change, true
}

// stamp adds the resourceVersion, which the API server does not store in the value.
func stamp(object map[string]any, revision int64) {
	u := unstructured.Unstructured{Object: object}
	u.SetResourceVersion(strconv.FormatInt(revision, 10))
}

// protobufHead is the prefix of values that Kubernetes stores as protobuf.
var protobufHead = []byte("k8s\x00")

// decode decodes a value: protobuf for upstream's kinds, JSON for custom resources. An object of
// an unknown kind is reduced to its metadata.
func (r *Reader) decode(value []byte) (map[string]any, error) {
	if !bytes.HasPrefix(value, protobufHead) {
		var object map[string]any
		if err := json.Unmarshal(value, &object); err != nil {
			return nil, fmt.Errorf("reading an object from the store: %w", err)
		}
		return object, nil
	}
	decoded, _, err := r.upstream.Decode(value, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return metadataOf(value)
	}
	if err != nil {
		return nil, fmt.Errorf("reading an object from the store: %w", err)
	}
	return unstructuredOf(decoded)
}

func unstructuredOf(object runtime.Object) (map[string]any, error) {
	kind := object.GetObjectKind().GroupVersionKind()
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("reading a %s from the store: %w", kind.Kind, err)
	}
	out["apiVersion"], out["kind"] = kind.ToAPIVersionAndKind()
	return out, nil
}

func metadataOf(value []byte) (map[string]any, error) {
	var envelope runtime.Unknown
	var object metav1.PartialObjectMetadata
	err := envelope.Unmarshal(value[len(protobufHead):])
	if err == nil {
		// The first field of every kind is its metadata, as in PartialObjectMetadata.
		err = object.Unmarshal(envelope.Raw)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of an object from the store: %w", err)
	}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(envelope.APIVersion, envelope.Kind))
	return unstructuredOf(&object)
}

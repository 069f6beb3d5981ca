package lab

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// protobufHead is the prefix of values that Kubernetes stores as protobuf.
var protobufHead = []byte("k8s\x00")

// A decoder reads objects as they are stored: protobuf for upstream's kinds, JSON for
// custom resources. It replaces the values of Secrets with hashes, so that nothing
// downstream can leak them.
type decoder struct {
	upstream runtime.Decoder
	hide     func(value string) string
}

func newDecoder(hide func(string) string) decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return decoder{upstream: serializer.NewCodecFactory(scheme).UniversalDeserializer(), hide: hide}
}

// object decodes a value. An object of an unknown kind is reduced to its metadata.
func (d decoder) object(value []byte) (state.Object, error) {
	if !bytes.HasPrefix(value, protobufHead) {
		var object state.Object
		if err := json.Unmarshal(value, &object); err != nil {
			return nil, fmt.Errorf("reading an object from the store: %w", err)
		}
		return object, nil
	}
	decoded, _, err := d.upstream.Decode(value, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return metadataOf(value)
	}
	if err != nil {
		return nil, fmt.Errorf("reading an object from the store: %w", err)
	}
	if secret, ok := decoded.(*corev1.Secret); ok {
		return d.secret(secret)
	}
	return unstructuredOf(decoded)
}

func unstructuredOf(object runtime.Object) (state.Object, error) {
	kind := object.GetObjectKind().GroupVersionKind()
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("reading a %s from the store: %w", kind.Kind, err)
	}
	out["apiVersion"], out["kind"] = kind.ToAPIVersionAndKind()
	return out, nil
}

// secret converts a Secret and hashes its values, including the values in the annotation
// that kubectl apply adds.
func (d decoder) secret(secret *corev1.Secret) (state.Object, error) {
	values := map[string]any{}
	for key, value := range secret.Data {
		values[key] = d.hide(string(value))
	}
	secret.Data = nil
	if last, ok := secret.Annotations[corev1.LastAppliedConfigAnnotation]; ok {
		secret.Annotations[corev1.LastAppliedConfigAnnotation] = d.hide(last)
	}
	out, err := unstructuredOf(secret)
	if err == nil && len(values) > 0 {
		out["data"] = values
	}
	return out, err
}

func metadataOf(value []byte) (state.Object, error) {
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

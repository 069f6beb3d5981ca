package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Body is the body of a request or response as it was on the wire. It is decoded on
// demand.
type Body struct {
	data        []byte
	contentType string
	encoding    string
}

// NewBody returns a Body that keeps data; the caller must not change data afterwards. The
// two strings are the headers Content-Type and Content-Encoding.
func NewBody(data []byte, contentType, encoding string) Body {
	return Body{data: data, contentType: contentType, encoding: encoding}
}

// Len returns the number of bytes on the wire.
func (b Body) Len() int { return len(b.data) }

// Equal reports whether both bodies have the same bytes and the same type.
func (b Body) Equal(o Body) bool {
	return bytes.Equal(b.data, o.data) && b.contentType == o.contentType && b.encoding == o.encoding
}

// String describes the body without its content, which may be secret.
func (b Body) String() string { return fmt.Sprintf("%d bytes of %q", len(b.data), b.contentType) }

// GoString returns the same text as String, for %#v.
func (b Body) GoString() string { return b.String() }

var protobufMagic = []byte("k8s\x00")

// Plain returns the uncompressed body.
func (b Body) Plain() ([]byte, error) {
	switch b.encoding {
	case "", "identity":
		return b.data, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(b.data))
		if err != nil {
			return nil, fmt.Errorf("unpacking a body: %w", err)
		}
		data, err := io.ReadAll(z)
		if err != nil {
			return nil, fmt.Errorf("unpacking a body: %w", err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("unpacking a body: unknown encoding %q", b.encoding)
}

// json returns the body as JSON, or nil if the body is empty.
func (b Body) json() ([]byte, error) {
	data, err := b.Plain()
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return nil, err
	}
	switch b.format(data) {
	case "protobuf":
		return protobufJSON(data)
	case "cbor":
		var v any
		if err := direct.Unmarshal(data, &v); err != nil {
			return nil, fmt.Errorf("decoding CBOR: %w", err)
		}
		return json.Marshal(v)
	case "yaml":
		// Most clients send JSON even in a body that they declare as YAML, such as an apply
		// patch.
		if json.Valid(data) {
			return data, nil
		}
		out, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil, fmt.Errorf("decoding YAML: %w", err)
		}
		return out, nil
	case "json":
		if !json.Valid(data) {
			return nil, fmt.Errorf("decoding %d bytes of %s: the data is not JSON", len(data), b.contentType)
		}
		return data, nil
	}
	return nil, fmt.Errorf("a body of type %q contains no object", b.contentType)
}

// format returns the encoding of a body, by its content type and its first bytes.
func (b Body) format(data []byte) string {
	if bytes.HasPrefix(data, protobufMagic) {
		return "protobuf"
	}
	media, _, err := mime.ParseMediaType(b.contentType)
	switch {
	case err != nil || media == "":
		return "yaml"
	case strings.HasSuffix(media, "json"):
		return "json"
	case strings.HasSuffix(media, "yaml"):
		return "yaml"
	case strings.HasSuffix(media, "cbor"):
		return "cbor"
	}
	return media
}

// decoder handles the built-in types and CustomResourceDefinition, because no other kinds
// are encoded as protobuf.
var decoder = sync.OnceValue(func() runtime.Decoder {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(s); err != nil {
			panic(err) // two Go types for one kind: a bug in this function
		}
	}
	return serializer.NewCodecFactory(s).UniversalDeserializer()
})

func protobufJSON(data []byte) ([]byte, error) {
	obj, kind, err := decoder().Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding protobuf: %w", err)
	}
	obj.GetObjectKind().SetGroupVersionKind(*kind)
	out, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding a %s as JSON: %w", kind.Kind, err)
	}
	return out, nil
}

// value decodes the body like encoding/json, but integers become int64, as elsewhere in
// Kubernetes.
func (b Body) value() (any, error) {
	data, err := b.json()
	if err != nil || data == nil {
		return nil, err
	}
	var v any
	if err := utiljson.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("decoding a body: %w", err)
	}
	return v, nil
}

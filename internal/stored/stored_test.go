package stored

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// configMap returns a ConfigMap as the API server stores it.
func configMap(t testing.TB, name, value string) []byte {
	t.Helper()
	object := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"v": value},
	}
	var b bytes.Buffer
	if err := protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme).Encode(object, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestObjectsAreReadInBothForms(t *testing.T) {
	r := NewReader()
	c, ok := r.Read("/a", configMap(t, "a", "1"), 7)
	if !ok || c.Kind != "ConfigMap" || c.Namespace != "default" || c.Object["data"].(map[string]any)["v"] != "1" {
		t.Errorf("protobuf: %v", c)
	}
	if u := (unstructured.Unstructured{Object: c.Object}); u.GetResourceVersion() != "7" {
		t.Errorf("the resourceVersion is %q", u.GetResourceVersion())
	}
	c, ok = r.Read("/b", []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":3}}`), 8)
	if !ok || c.Group != "example.com" || c.Kind != "Widget" || c.Name != "a" {
		t.Errorf("JSON: %v", c)
	}
	for _, value := range []string{"", "null", "10.0.0.0/24", "{}", "k8s\x00\xff\xff\xff"} {
		if c, ok := r.Read("/c", []byte(value), 9); ok {
			t.Errorf("%q is read as %v", value, c)
		}
	}
}

func TestObjectOfAnUnknownKindIsReducedToItsMetadata(t *testing.T) {
	// The envelope names the kind; replace that name with one of the same length.
	value := bytes.Replace(configMap(t, "a", "1"), []byte("ConfigMap"), []byte("Somewhat_"), 1)
	c, ok := NewReader().Read("/a", value, 1)
	if !ok || c.Kind != "Somewhat_" || c.Name != "a" || c.Object["data"] != nil {
		t.Errorf("it is %v", c)
	}
}

func TestADeletionNamesTheObjectThatWasCreated(t *testing.T) {
	r := NewReader()
	type step struct {
		Name              string
		Read, Created, Is bool
	}
	var got []step
	for i, value := range [][]byte{nil, configMap(t, "a", "1"), configMap(t, "a", "2"), nil, nil, configMap(t, "a", "3")} {
		c, ok := r.Read("/a", value, int64(i))
		got = append(got, step{c.Name, ok, c.Created, c.Object != nil})
	}
	want := []step{{}, {"a", true, true, true}, {"a", true, false, true}, {"a", true, false, false}, {}, {"a", true, true, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(configMap(f, "a", "1"))
	f.Add([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`))
	f.Add([]byte(`{"metadata":{"name":3}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if c, ok := NewReader().Read("/a", value, 1); ok && c.Name == "" {
			t.Errorf("an object without a name: %v", c)
		}
	})
}

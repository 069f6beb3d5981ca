package interference

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	ktesting "k8s.io/client-go/testing"

	"github.com/google/go-cmp/cmp"
)

// children returns a client for ConfigMaps, of which one exists.
func children(t *testing.T) (*fake.FakeDynamicClient, dynamic.ResourceInterface) {
	t.Helper()
	client := fake.NewSimpleDynamicClient(scheme.Scheme, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "child", Finalizers: []string{"example.com/own"}},
		Data:       map[string]string{"a": "1", "b": "2"},
	})
	return client, Client{Dynamic: client}.At(corev1.SchemeGroupVersion.WithResource("configmaps"), "d")
}

func child(t *testing.T, resource dynamic.ResourceInterface) *unstructured.Unstructured {
	t.Helper()
	object, err := resource.Get(t.Context(), "child", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestAnEditChangesOneFieldToTheFirstValueThatIsValid(t *testing.T) {
	client, resource := children(t)
	refused := 0
	client.PrependReactor("patch", "configmaps", func(ktesting.Action) (bool, runtime.Object, error) {
		if refused++; refused > 1 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "child", nil)
	})
	values := []any{map[string]any{"a": "refused"}, map[string]any{"a": "2"}, map[string]any{"a": "3"}}
	if err := Edit(t.Context(), resource, "child", []string{"data"}, values); err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(child(t, resource).Object, "data")
	if diff := cmp.Diff(map[string]string{"a": "2", "b": "2"}, data); diff != "" {
		t.Error(diff)
	}
}

func TestAnEditWithoutAValidValueIsAnError(t *testing.T) {
	client, resource := children(t)
	if err := Edit(t.Context(), resource, "child", []string{"data"}, nil); !errors.Is(err, errNoOther) {
		t.Error(err)
	}
	client.PrependReactor("patch", "configmaps", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "child", nil)
	})
	if err := Edit(t.Context(), resource, "child", []string{"data"}, []any{"x", "y"}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
}

func TestTheOtherFinalizersAreKept(t *testing.T) {
	_, resource := children(t)
	for _, add := range []bool{true, true, false} {
		if err := SetFinalizer(t.Context(), resource, "child", add); err != nil {
			t.Fatal(err)
		}
		want := []string{"example.com/own"}
		if add {
			want = append(want, holdFinalizer)
		}
		if diff := cmp.Diff(want, child(t, resource).GetFinalizers()); diff != "" {
			t.Error(diff)
		}
	}
}

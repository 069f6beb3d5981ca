package inject

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// snapshot is a store whose content does not change.
type snapshot map[state.Ref]state.Object

func (s snapshot) Objects() map[state.Ref]state.Object { return s }
func (s snapshot) History() state.History              { return state.History{} }
func (s snapshot) Touched() <-chan struct{}            { return nil }

func TestTheValueOfASecretIsReplacedByARandomOneThatIsNeverShown(t *testing.T) {
	const was = "the-first-password"
	client := fake.NewSimpleDynamicClient(scheme.Scheme, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "s"},
		Data:       map[string][]byte{"password": []byte(was), "user": []byte("root")},
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	log := trace.NewLog(time.Now())
	i := New(Config{
		Fault: fault.Fault{Kind: fault.EditChild, Point: fault.Point{Step: "s"}, Target: "Secret/d/s", Field: "data.password"},
		Log:   log, Mask: &state.Mask{}, Cluster: interference.Client{Dynamic: client, Mapper: mapper},
		Store: snapshot{{GroupKind: schema.GroupKind{Kind: "Secret"}, Namespace: "d", Name: "s"}: {
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "d", "name": "s"},
			"data": map[string]any{"password": "hmac:1", "user": "hmac:2"},
		}},
	})
	i.Enter("s")
	if done, err := i.Strike(t.Context()); !done || err != nil {
		t.Fatalf("done is %t, %v: %+v", done, err, i.Outcome())
	}
	object, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("d").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	value, err := base64.StdEncoding.DecodeString(data["password"])
	if err != nil || len(value) == 0 || string(value) == was || data["user"] != base64.StdEncoding.EncodeToString([]byte("root")) {
		t.Errorf("the data is now %v, %v", data, err)
	}
	if text := scrub.Known.Text("dialling with " + string(value) + " or " + data["password"]); strings.Contains(text, string(value)) || strings.Contains(text, data["password"]) {
		t.Errorf("a controller that prints the value shows it: %s", text)
	}
	for _, e := range log.Entries() {
		if e.Fault != nil && strings.Contains(e.Fault.Text, string(value)) {
			t.Errorf("the trace shows the value: %s", e.Fault.Text)
		}
	}
}

func TestLabelsAreChangedAndOwnersAreRemoved(t *testing.T) {
	labels := map[string]any{"app.kubernetes.io/name": "web", "zone": "a"}
	owner := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
	for field, want := range map[string]func(*unstructured.Unstructured) bool{
		fault.Labels: func(o *unstructured.Unstructured) bool {
			l := o.GetLabels()
			return len(l) == 2 && l["app.kubernetes.io/name"] == "webx" && l["zone"] == "a" && len(o.GetOwnerReferences()) == 1
		},
		fault.Owners: func(o *unstructured.Unstructured) bool {
			return len(o.GetLabels()) == 2 && len(o.GetOwnerReferences()) == 0
		},
	} {
		secret := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"namespace": "d", "name": "s", "labels": labels, "ownerReferences": []any{owner}},
		}}
		client := fake.NewSimpleDynamicClient(scheme.Scheme, secret.DeepCopy())
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
		i := New(Config{
			Fault: fault.Fault{Kind: fault.EditChild, Point: fault.Point{Step: "s"}, Target: "Secret/d/s", Field: field},
			Log:   trace.NewLog(time.Now()), Mask: &state.Mask{}, Cluster: interference.Client{Dynamic: client, Mapper: mapper},
			Store: snapshot{{GroupKind: schema.GroupKind{Kind: "Secret"}, Namespace: "d", Name: "s"}: secret.Object},
		})
		i.Enter("s")
		if done, err := i.Strike(t.Context()); !done || err != nil {
			t.Fatalf("%s: done is %t, %v: %+v", field, done, err, i.Outcome())
		}
		object, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("d").Get(t.Context(), "s", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !want(object) {
			t.Errorf("%s: the metadata is %v", field, object.Object["metadata"])
		}
	}
}

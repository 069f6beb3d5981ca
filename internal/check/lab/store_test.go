package lab

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// encoded returns an upstream object as it is stored.
func encoded(t *testing.T, kind schema.GroupVersionKind, object runtime.Object) []byte {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(kind)
	var b bytes.Buffer
	if err := protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme).Encode(object, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func configMap(t *testing.T, name, value string) []byte {
	t.Helper()
	return encoded(t, corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"v": value},
	})
}

func TestPlacesOfSecretValuesAreKnownUntilTheNextRun(t *testing.T) {
	const value = "s3cr3t-Passw0rd"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Data: map[string][]byte{"password": []byte(value)}}
	s := newStore([]byte("key"))
	s.begin(time.Now(), nil)
	s.take(2, []storage.Commit{
		{Revision: 1, Key: "/db", Value: encoded(t, corev1.SchemeGroupVersion.WithKind("Secret"), secret)},
		{Revision: 2, Key: "/app", Value: configMap(t, "app", "password="+value)},
	})
	found := s.exposed(nil, "connecting with "+value)
	if len(found) != 2 || found[0].Revision != 2 || found[0].Path != "data.v" || found[1].Line != "connecting with [secret value]" {
		t.Errorf("found %+v", found)
	}
	data, err := json.Marshal(found)
	if err != nil || strings.Contains(string(data), value) {
		t.Errorf("the places contain the value: %s, %v", data, err)
	}
	s.begin(time.Now(), nil)
	if found := s.exposed(nil, value); len(found) > 0 {
		t.Errorf("in the next run, which has no Secret, found %+v", found)
	}
}

func TestSecretValuesAreHashedOnReading(t *testing.T) {
	const value, other = "very-secret-4711", "other-secret-0815"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a",
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"stringData":{"one":"` + value + `"}}`, "kept": "yes"},
		},
		Data: map[string][]byte{"one": []byte(value), "same": []byte(value), "other": []byte(other)},
		Type: corev1.SecretTypeOpaque,
	}
	ref := state.Ref{GroupKind: schema.GroupKind{Kind: "Secret"}, Namespace: "default", Name: "a"}
	hidden := func(key string) state.Object {
		s := newStore([]byte(key))
		s.take(1, []storage.Commit{{Revision: 1, Key: "/a", Value: encoded(t, corev1.SchemeGroupVersion.WithKind("Secret"), secret)}})
		return s.Objects()[ref]
	}
	object := hidden("key")
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{value, other, base64.StdEncoding.EncodeToString([]byte(value))} {
		if strings.Contains(string(data), leak) {
			t.Errorf("the object contains %s: %s", leak, data)
		}
	}
	values := object["data"].(map[string]any)
	if values["one"] != values["same"] || values["one"] == values["other"] || !strings.HasPrefix(values["one"].(string), "hmac:") {
		t.Errorf("the values are %v; only equal values may have equal hashes", values)
	}
	if annotations := object["metadata"].(map[string]any)["annotations"].(map[string]any); annotations["kept"] != "yes" {
		t.Errorf("annotations %v", annotations)
	}
	if object["kind"] != "Secret" || object["apiVersion"] != "v1" || object["type"] != "Opaque" {
		t.Errorf("it is %v", object)
	}
	if again := hidden("another key"); again["data"].(map[string]any)["one"] == values["one"] {
		t.Error("with another key, the hash is the same")
	}
}

var a = state.Ref{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "default", Name: "a"}

func TestStoreKeepsEachChangeWithThePreviousObject(t *testing.T) {
	s := newStore(nil)
	s.take(5, []storage.Commit{{Revision: 3, Key: "/a", Value: configMap(t, "a", "0")}, {Revision: 4, Key: "/gone", Value: configMap(t, "gone", "0")}})
	s.begin(time.Now(), nil)
	s.take(9, []storage.Commit{
		{Revision: 6, Key: "/a", Value: configMap(t, "a", "1")},
		{Revision: 7, Key: "/gone"},
		{Revision: 8, Key: "/ranges", Value: []byte("no object")},
		{Revision: 8, Key: "/never"},
		{Revision: 9, Key: "/gone", Value: configMap(t, "gone", "2")},
	})
	type change struct {
		Revision      int64
		Name          string
		Op            state.Op
		Before, After any
	}
	value := func(object state.Object) any {
		if object == nil {
			return nil
		}
		return object["data"].(map[string]any)["v"]
	}
	var got []change
	h := s.History()
	for _, c := range h.Changes {
		got = append(got, change{c.Revision, c.Ref.Name, c.Op, value(c.Before), value(c.After)})
	}
	want := []change{{6, "a", state.Updated, "0", "1"}, {7, "gone", state.Deleted, "0", nil}, {9, "gone", state.Created, nil, "2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if value(h.Baseline[a]) != "0" || len(h.Baseline) != 2 {
		t.Errorf("the baseline is %v", h.Baseline)
	}
	if revision, _ := s.seen(); revision != 9 {
		t.Errorf("seen up to %d", revision)
	}
	now := s.find(func(ref state.Ref, _ state.Object) bool { return ref == a })
	if len(now) != 1 || now[a]["metadata"].(map[string]any)["resourceVersion"] != "6" {
		t.Errorf("the current object is %v", now)
	}
}

func TestOnlyBookkeepingDoesNotDelayRest(t *testing.T) {
	custom := func(kind string) []byte {
		return []byte(`{"apiVersion":"example.com/v1","kind":"` + kind + `","metadata":{"name":"a"}}`)
	}
	owned := func(kind string) []byte {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}
		if kind != "" {
			lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: "o", UID: "u"}}
		}
		return encoded(t, coordinationv1.SchemeGroupVersion.WithKind("Lease"), lease)
	}
	election := encoded(t, corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "leader", Annotations: map[string]string{request.LeaderAnnotation: "{}"}},
	})
	for name, c := range map[string]struct {
		value  []byte
		delays bool
	}{
		"an Event":           {encoded(t, corev1.SchemeGroupVersion.WithKind("Event"), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}}), false},
		"a Node":             {encoded(t, corev1.SchemeGroupVersion.WithKind("Node"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}), false},
		"an election record": {election, false},
		"a ConfigMap":        {configMap(t, "a", "1"), true},
		"a custom Node":      {custom("Node"), true},
		"a custom Event":     {custom("Event"), true},
		"a custom Lease":     {custom("Lease"), true},
		"a Lease":            {owned(""), false},
		"a Node's Lease":     {owned("Node"), false},
		"a resource's Lease": {owned("Widget"), true},
	} {
		for _, deleted := range []bool{false, true} {
			s := newStore(nil)
			if deleted {
				s.take(1, []storage.Commit{{Revision: 1, Key: "/a", Value: c.value}})
				c.value = nil
			}
			s.begin(time.Now(), nil)
			_, began := s.seen()
			s.take(2, []storage.Commit{{Revision: 2, Key: "/a", Value: c.value}})
			if _, moved := s.seen(); moved.After(began) != c.delays {
				t.Errorf("%s (deleted: %t) delays rest: %t", name, deleted, moved.After(began))
			}
		}
	}
}

func TestChangeOfTheStoreWakesWaiters(t *testing.T) {
	s := newStore(nil)
	one, two := s.touched.Next(), s.touched.Next()
	s.take(1, nil)
	<-one
	<-two
	select {
	case <-s.touched.Next():
		t.Error("a new waiter is woken by the previous change")
	default:
	}
}

func TestTheTimesOfChangesAndRequestsHaveOneOrigin(t *testing.T) {
	t.Parallel()
	s := newStore([]byte("key"))
	// On a busy machine, the history begins later than the trace of the run.
	began := time.Now().Add(-time.Hour)
	s.begin(began, nil)
	if !s.since().Equal(began) {
		t.Errorf("the history is measured from %s, and the trace from %s", s.since(), began)
	}
}

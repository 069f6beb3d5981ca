package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/google/go-cmp/cmp"
)

const (
	inJSON     = "application/json"
	inProtobuf = "application/vnd.kubernetes.protobuf"
)

func asProtobuf(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	var buf bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func packed(data string) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, _ = z.Write([]byte(data))
	z.Close()
	return buf.Bytes()
}

func TestEntriesAreNumberedWithoutGapsHoweverManyRecord(t *testing.T) {
	log := NewLog(time.Now())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				log.Record(Entry{Process: &Process{What: "started"}})
			}
		})
	}
	all.Wait()
	entries := log.Entries()
	for i, e := range entries {
		if e.Seq != int64(i)+1 || i > 0 && e.At < entries[i-1].At {
			t.Fatalf("entry %d is number %d at %v", i, e.Seq, e.At)
		}
	}
	if len(entries) != 800 || entries[790].Seq != 791 {
		t.Errorf("%d entries", len(entries))
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	log := NewLog(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))
	log.Subject = "manager --flag"
	log.Record(Entry{At: 5, Instance: "controller-1", Call: &Call{
		ID: 1, Verb: "update", Target: Target{Resource: "configmaps", Namespace: "a", Name: "b"}, Path: "/x?y=<z>", Code: 200,
		RawRequest: NewBody([]byte(`{"kind":"ConfigMap","n":1}`), inJSON, ""), RequestSize: 26, Took: 7,
	}})
	log.Record(Entry{At: 6, Watch: &Watch{Call: 1, Type: "CLOSED", Target: Target{Resource: "configmaps"}}})
	log.Record(Entry{At: 7, Fault: &Fault{What: "applied", Text: "killed"}})
	var out bytes.Buffer
	if n, err := log.WriteTo(&out); err != nil || n != int64(out.Len()) {
		t.Fatalf("WriteTo = %d, %v; %d were written", n, err, out.Len())
	}
	header, got, err := Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	want := log.Entries()
	want[0].Call.Request, want[0].Call.RawRequest = json.RawMessage(`{"kind":"ConfigMap","n":1}`), Body{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Header{Version: 1, Started: log.started, Subject: "manager --flag"}, header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if obj, err := got[0].Call.RequestObject(); err != nil || obj["n"] != int64(1) {
		t.Errorf("the request of what was read is %v, %v", obj, err)
	}
}

func TestReadSaysWhichLineIsWrong(t *testing.T) {
	const header = `{"version":1,"started":"2026-11-21T09:00:00Z"}` + "\n"
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "line 1"},
		{"other file", "hello\n", "line 1 is not the header of a trace"},
		{"no version", "{}\n", "line 1: the header has no version"},
		{"later version", `{"version":4}` + "\n", "version 4, but this koboshi reads versions up to 3"},
		{"cut off", header + `{"seq":1,"at":1,"ca`, "line 2"},
		{"nothing", header + `{"seq":1,"at":1}`, "line 2: entry 1 has 0 of"},
		{"two things", header + `{"seq":1,"at":1,"step":{},"fault":{}}`, "line 2: entry 1 has 2 of"},
		{"out of order", header + `{"seq":2,"step":{}}` + "\n" + `{"seq":1,"step":{}}`, "line 3: entry 1 follows entry 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := Read(strings.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Read = %v, want %q in it", err, c.want)
			}
		})
	}
}

func FuzzWhatCanBeReadCanBeWrittenAndReadAgain(f *testing.F) {
	f.Add([]byte(`{"version":1}` + "\n" + `{"seq":1,"at":5,"call":{"id":1,"verb":"get","path":"/x","code":200,"request":{"kind":"Secret","data":{"a":"b"}}}}`))
	f.Add([]byte(`{"version":1}` + "\n\n" + `{"seq":3,"watch":{"call":1,"type":"ADDED","object":[1,"x",null]}}` + "\n"))
	f.Add([]byte(`{"version":1}` + "\n" + `{"seq":1,"process":{"what":"exited","output":"\u0000<&>"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		header, entries, err := Read(bytes.NewReader(in))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Write(&out, header, entries); err != nil {
			if header.Started.Year() > 9999 || header.Started.Year() < 0 {
				return // a date that JSON cannot express
			}
			t.Fatalf("writing what was read: %v", err)
		}
		again := out.String()
		h2, e2, err := Read(&out)
		if err != nil {
			t.Fatalf("reading again: %v", err)
		}
		var third bytes.Buffer
		if err := Write(&third, h2, e2); err != nil || third.String() != again {
			t.Fatalf("%v; written again it is\n%s and was\n%s", err, third.String(), again)
		}
	})
}

func TestBodiesAreDecodedFromEveryEncoding(t *testing.T) {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}
	const text = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}`
	want := map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "v"}}
	for name, body := range map[string]Body{
		"JSON":                     NewBody([]byte(text), inJSON, ""),
		"JSON with a charset":      NewBody([]byte(text), "application/json; charset=utf-8", ""),
		"packed":                   NewBody(packed(text), inJSON, "gzip"),
		"merge patch":              NewBody([]byte(text), "application/merge-patch+json", ""),
		"YAML":                     NewBody([]byte("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata:\n  k: v\n"), "application/apply-patch+yaml", ""),
		"JSON that is called YAML": NewBody([]byte(text), "application/apply-patch+yaml", ""),
		"no type":                  NewBody([]byte(text), "", ""),
		"protobuf":                 NewBody(asProtobuf(t, obj), inProtobuf, ""),
	} {
		t.Run(name, func(t *testing.T) {
			call := Call{RawRequest: body, RawResponse: body, Target: Target{Resource: "configmaps"}}
			for _, get := range []func() (map[string]any, error){call.RequestObject, call.ResponseObject} {
				got, err := get()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestPatchesThatAreListsAreFoundUnderTheirKey(t *testing.T) {
	call := Call{RawRequest: NewBody([]byte(`[{"op":"remove","path":"/a"}]`), "application/json-patch+json", "")}
	got, err := call.RequestObject()
	want := map[string]any{PatchKey: []any{map[string]any{"op": "remove", "path": "/a"}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestWhatCannotBeDecodedIsAnErrorAndIsNotWritten(t *testing.T) {
	for _, b := range []Body{
		NewBody([]byte("k8s\x00 nonsense sesame"), inProtobuf, ""),
		NewBody([]byte(`{"sesame"`), inJSON, ""),
		NewBody([]byte("sesame"), "text/plain", ""),
		NewBody([]byte("sesame"), inJSON, "br"),
	} {
		call := Call{RawResponse: b}
		if _, err := call.ResponseObject(); err == nil {
			t.Errorf("%v was decoded", b)
		}
		if out, err := json.Marshal(call); err != nil || bytes.Contains(out, []byte("sesame")) {
			t.Errorf("%v was written as %s, %v", b, out, err)
		}
	}
}

func TestNoSecretValueIsInAWrittenTrace(t *testing.T) {
	const value = "open-sesame-1234"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"p": []byte(value)}, StringData: map[string]string{"q": value}}
	secrets, other := Target{Version: "v1", Resource: "secrets", Namespace: "a"}, Target{Group: "x.io", Resource: "widgets"}
	quoted, _ := json.Marshal(`{"apiVersion":"v1","kind":"Secret","data":{"p":"` + encoded + `"}}`)
	js := func(s string) Body { return NewBody([]byte(s), inJSON, "") }
	for name, c := range map[string]Call{
		"JSON":           {Target: secrets, RawRequest: js(`{"kind":"Secret","data":{"p":"` + encoded + `"},"stringData":{"q":"` + value + `"}}`)},
		"without kind":   {Target: secrets, RawRequest: js(`{"data":{"p":"` + encoded + `"}}`)},
		"kind elsewhere": {Target: other, RawRequest: js(`{"kind":"W","spec":{"template":{"apiVersion":"v1","kind":"Secret","stringData":{"q":"` + value + `"}}}}`)},
		"kind escaped":   {Target: other, RawRequest: js(`{"kind":"W","spec":[{"kind":"\u0053ecret","stringData":{"q":"` + value + `"}}]}`)},
		"list":           {Target: secrets, RawResponse: js(`{"kind":"SecretList","items":[{"metadata":{"name":"s"},"data":{"p":"` + encoded + `"}}]}`)},
		"generic list":   {Target: other, RawResponse: js(`{"kind":"List","items":[{"kind":"Secret","data":{"p":"` + encoded + `"}}]}`)},
		"packed list":    {Target: secrets, RawResponse: NewBody(packed(`{"kind":"SecretList","items":[{"data":{"p":"`+encoded+`"}}]}`), inJSON, "gzip")},
		"protobuf":       {Target: secrets, RawRequest: NewBody(asProtobuf(t, secret), inProtobuf, "")},
		"protobuf list":  {Target: secrets, RawResponse: NewBody(asProtobuf(t, &corev1.SecretList{Items: []corev1.Secret{*secret}}), inProtobuf, "")},
		"apply":          {Target: secrets, RawRequest: NewBody([]byte("kind: Secret\nstringData:\n  q: "+value+"\n"), "application/apply-patch+yaml", "")},
		"merge patch":    {Target: secrets, RawRequest: NewBody([]byte(`{"data":{"p":"`+encoded+`","gone":null}}`), "application/merge-patch+json", "")},
		"JSON patch":     {Target: secrets, RawRequest: NewBody([]byte(`[{"op":"add","path":"/data/p","value":"`+encoded+`"},{"op":"test","path":"","value":{"stringData":{"q":"`+value+`"}}}]`), "application/json-patch+json", "")},
		"last applied":   {Target: secrets, RawResponse: js(`{"kind":"Secret","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` + string(quoted) + `}}}`)},
		"table":          {Target: secrets, RawResponse: js(`{"kind":"Table","rows":[{"object":{"kind":"PartialObjectMetadata","metadata":{"annotations":{"x/last-applied":` + string(quoted) + `}}}}]}`)},
		"text in a map":  {Target: Target{Resource: "configmaps"}, RawResponse: js(`{"kind":"ConfigMap","data":{"m":` + string(quoted) + `}}`)},
		"manifest":       {Target: Target{Resource: "configmaps"}, RawResponse: js(`{"kind":"ConfigMap","data":{"m":"apiVersion: v1\nkind: Secret\nstringData:\n  q: ` + value + `\n"}}`)},
		"token":          {Target: Target{Resource: "serviceaccounts", Subresource: "token"}, RawResponse: js(`{"kind":"TokenRequest","status":{"token":"` + value + `"}}`)},
		"token review":   {Target: Target{Group: "authentication.k8s.io", Resource: "tokenreviews"}, RawRequest: js(`{"kind":"TokenReview","spec":{"token":"` + value + `"}}`)},
		"error": {Target: secrets, Reason: "Invalid", Message: "patch: Invalid value: " + encoded,
			RawResponse: js(`{"kind":"Status","reason":"Invalid","message":"patch: ` + value + `","details":{"causes":[{"message":"` + value + `"}]}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			log := NewLog(time.Now())
			log.Record(Entry{Call: &c})
			log.Record(Entry{Watch: &Watch{Type: "ADDED", Target: c.Target, RawObject: c.RawRequest}})
			log.Record(Entry{Watch: &Watch{Type: "ADDED", Target: c.Target, RawObject: c.RawResponse}})
			var out bytes.Buffer
			if _, err := log.WriteTo(&out); err != nil {
				t.Fatal(err)
			}
			request, err := c.RequestObject()
			if err != nil {
				t.Fatal(err)
			}
			response, err := c.ResponseObject()
			if err != nil {
				t.Fatal(err)
			}
			shown := out.String() + fmt.Sprint(request, response) + fmt.Sprintf("%v %+v %#v", c.RawRequest, c.RawResponse, c.RawRequest)
			for _, s := range []string{value, encoded} {
				if strings.Contains(shown, s) {
					t.Errorf("%s is in %s", s, shown)
				}
			}
			if !strings.Contains(out.String(), "redacted:sha256:") {
				t.Errorf("nothing tells that something was redacted: %s", out.String())
			}
		})
	}
}

func TestEqualSecretsStayEqualAndOthersDiffer(t *testing.T) {
	obj := map[string]any{
		"kind":       "Secret",
		"data":       map[string]any{"a": base64.StdEncoding.EncodeToString([]byte("password")), "b": base64.StdEncoding.EncodeToString([]byte("other"))},
		"stringData": map[string]any{"c": "password"},
	}
	Redact(obj)
	data, plain := obj["data"].(map[string]any), obj["stringData"].(map[string]any)
	if data["a"] != plain["c"] || data["a"] == data["b"] {
		t.Errorf("redacted %v, want a and c equal, and b another", obj)
	}
	first := fmt.Sprint(obj)
	Redact(obj)
	if got := fmt.Sprint(obj); got != first {
		t.Errorf("redacted twice it is %s, and was %s", got, first)
	}
}

func TestWhatIsNotSecretIsKept(t *testing.T) {
	const text = `{"kind":"Pod","spec":{"imagePullSecrets":[{"name":"Secret"}],"data":{"x":"y"}},"metadata":{"annotations":{"a/last-applied":"{}"}}}`
	call := Call{Target: Target{Resource: "pods"}, RawRequest: NewBody([]byte(text), inJSON, "")}
	got, err := call.RequestObject()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

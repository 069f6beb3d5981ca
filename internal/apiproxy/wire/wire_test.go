package wire

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/google/go-cmp/cmp"
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

func protobufFrame(t testing.TB, kind string, obj runtime.Object) []byte {
	t.Helper()
	message, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: asProtobuf(t, obj)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

func TestMetadataIsFoundWhereverItIs(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7", GenerateName: "x", Annotations: map[string]string{"z": "y"}}}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{*pod}}
	for name, c := range map[string]struct {
		in   string
		want Meta
	}{
		"typed":     {`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"7"},"spec":{}}`, Meta{Kind: "Pod", Name: "a", ResourceVersion: "7"}},
		"sorted":    {`{"apiVersion":"x/v1","kind":"W","metadata":{"annotations":{"n":"\"resourceVersion\":\"1\"\\"},"managedFields":[{"f:metadata":{"name":"no"}}],"name":"a","resourceVersion":"7"}}`, Meta{Kind: "W", Name: "a", ResourceVersion: "7"}},
		"list":      {`{"apiVersion":"x/v1","items":[{"metadata":{"resourceVersion":"1","name":"no"}},{}],"kind":"WList","metadata":{"continue":"","resourceVersion":"9"}}`, Meta{Kind: "WList", ResourceVersion: "9"}},
		"spaced":    {"{\n \"kind\": \"W\",\n \"spec\": -1.5e3, \"on\" : true,\n \"metadata\": {\n \"resourceVersion\": \"7\"\n}}", Meta{Kind: "W", ResourceVersion: "7"}},
		"cut off":   {`{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metada`, Meta{Kind: "PodList", ResourceVersion: "9"}},
		"no object": {`[1,2]`, Meta{}},
		"nothing":   {``, Meta{}},
		"no JSON":   {`{{"a`, Meta{}},
		"odd types": {`{"kind":5,"metadata":{"name":{},"resourceVersion":null,"annotations":[]}}`, Meta{}},
		"protobuf":  {string(asProtobuf(t, pod)), Meta{Kind: "Pod", Name: "a", ResourceVersion: "7"}},
		"its list":  {string(asProtobuf(t, list)), Meta{Kind: "PodList", ResourceVersion: "9"}},
		"its start": {string(asProtobuf(t, pod)[:12]), Meta{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Peek([]byte(c.in))
			if name == "its start" {
				return // the result does not matter, only that it returns
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStreamsAreCutIntoEventsAndStayTheSameByteForByte(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("long", 9000), ResourceVersion: "7"}}
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	compact := `{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"` + pod.Name + `","resourceVersion":"7"}}}` + "\n"
	bookmark := `{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	pretty := "{\n  \"object\": {\n    \"kind\": \"Pod\",\n    \"metadata\": {\n      \"name\": \"a\",\n      \"resourceVersion\": \"7\"\n    }\n  },\n  \"type\": \"ADDED\"\n}\n"
	for name, c := range map[string]struct {
		in       string
		protobuf bool
	}{
		"JSON":     {compact + bookmark, false},
		"for eyes": {pretty + bookmark, false},
		"protobuf": {string(protobufFrame(t, "ADDED", pod)) + string(protobufFrame(t, "BOOKMARK", end)), true},
	} {
		t.Run(name, func(t *testing.T) {
			frames := NewFrames(iotest.OneByteReader(strings.NewReader(c.in+"rest")), c.protobuf)
			var all []byte
			var events []Event
			for {
				frame, err := frames.Next()
				all = append(all, frame...)
				if err != nil {
					break // the rest is incomplete, or not a frame
				}
				events = append(events, ParseEvent(frame, c.protobuf))
			}
			if len(events) != 2 || events[0].Type != "ADDED" || events[0].ResourceVersion != "7" ||
				events[1].Type != "BOOKMARK" || events[1].ResourceVersion != "8" || !events[1].InitialEventsEnd {
				t.Errorf("the events are %+v", events)
			}
			for _, e := range events {
				if m := Peek(e.Object); m != e.Meta {
					t.Errorf("the object of the event is %q", e.Object)
				}
			}
			if string(all) != c.in+"rest" {
				t.Error("the frames together differ from the stream")
			}
		})
	}
}

func FuzzNothingMakesReadingFail(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}`+"\n"), false)
	f.Add(protobufFrame(f, "ADDED", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}), true)
	f.Fuzz(func(t *testing.T, in []byte, protobuf bool) {
		frames := NewFrames(bytes.NewReader(in), protobuf)
		var all []byte
		for {
			frame, err := frames.Next()
			all = append(all, frame...)
			ParseEvent(frame, protobuf)
			Peek(frame)
			if err != nil {
				break
			}
		}
		if !bytes.Equal(all, in) {
			t.Errorf("the frames together are %q, and the stream was %q", all, in)
		}
	})
}

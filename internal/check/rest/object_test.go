package rest

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

var (
	job = state.Ref{GroupKind: schema.GroupKind{Group: "batch", Kind: "Job"}, Namespace: "default", Name: "j"}
	pod = state.Ref{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "default", Name: "p"}
)

func object(t *testing.T, text string) (o state.Object) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestPodIsPendingBetweenItsBindingAndItsStart(t *testing.T) {
	for _, c := range []struct {
		name   string
		ref    state.Ref
		object string
		want   bool
	}{
		{"a bound Pod", pod, `{"spec":{"nodeName":"n"},"status":{"phase":"Pending"}}`, true},
		{"a bound Pod without a status", pod, `{"spec":{"nodeName":"n"}}`, true},
		{"a Pod without a node", pod, `{"spec":{},"status":{"phase":"Pending"}}`, false},
		{"a running Pod", pod, `{"spec":{"nodeName":"n"},"status":{"phase":"Running"}}`, false},
		{"a Pod that is being deleted", pod, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"n"},"status":{"phase":"Pending"}}`, false},
		{"a custom Pod", state.Ref{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Pod"}}, `{"spec":{"nodeName":"n"},"status":{"phase":"Pending"}}`, false},
	} {
		if got := IsPending(c.ref, object(t, c.object)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestJobIsUnfinishedUntilUpstreamRecordsItsResult(t *testing.T) {
	for _, c := range []struct {
		name   string
		ref    state.Ref
		object string
		want   bool
	}{
		{"a running Pod", pod, `{"metadata":{"finalizers":["batch.kubernetes.io/job-tracking"]},"status":{"phase":"Running"}}`, false},
		{"a Pod that has ended and is not counted", pod, `{"metadata":{"finalizers":["batch.kubernetes.io/job-tracking"]},"status":{"phase":"Succeeded"}}`, true},
		{"a Pod that is counted", pod, `{"metadata":{},"status":{"phase":"Failed"}}`, false},
		{"a Job that is still counting Pods", job, `{"status":{"uncountedTerminatedPods":{"succeeded":["x"]}}}`, true},
		{"a Job whose result is decided", job, `{"status":{"uncountedTerminatedPods":{},"conditions":[{"type":"SuccessCriteriaMet","status":"True"}]}}`, true},
		{"a Job that is complete", job, `{"status":{"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}}`, false},
		{"a Job that waits for its Pods", job, `{"status":{"active":1}}`, false},
	} {
		if got := IsUnfinished(c.ref, object(t, c.object)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestAnObjectIsBehindUntilItsNewestGenerationIsObserved(t *testing.T) {
	boat := state.Ref{GroupKind: schema.GroupKind{Group: "sea.example.com", Kind: "Boat"}, Name: "ellen"}
	for _, c := range []struct {
		name, object string
		want         bool
	}{
		{"an older generation", `{"metadata":{"generation":3},"status":{"observedGeneration":2}}`, true},
		{"the newest generation", `{"metadata":{"generation":3},"status":{"observedGeneration":3}}`, false},
		{"no status yet", `{"metadata":{"generation":1}}`, false},
		{"a kind without generations", `{"metadata":{},"status":{"observedGeneration":2}}`, false},
		{"a text", `{"metadata":{"generation":3},"status":{"observedGeneration":"2"}}`, false},
		{"a deletion", `{"metadata":{"generation":3,"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"observedGeneration":2}}`, false},
	} {
		if got := IsBehind(boat, object(t, c.object)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if !IsBehind(boat, state.Object{"metadata": map[string]any{"generation": int64(2)}, "status": map[string]any{"observedGeneration": int64(1)}}) {
		t.Error("whole numbers are not compared")
	}
}

package lab

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ktesting "k8s.io/client-go/testing"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

var somePod = state.Ref{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "default", Name: "p"}

func parsed(t *testing.T, text string) (o state.Object) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	runningForJob = `{"metadata":{"ownerReferences":[{"kind":"Job"}]},"spec":{"nodeName":"node-1"},"status":{"phase":"Running"}}`
	endedForJob   = `{"metadata":{"ownerReferences":[{"kind":"Job"}]},"spec":{"nodeName":"node-1"},"status":{"phase":"Succeeded"}}`
)

func TestOnlySimulatedPodsThatAreExpectedToEndAreEnded(t *testing.T) {
	for _, c := range []struct {
		name   string
		object string
		want   bool
	}{
		{"a running Pod of a Job", runningForJob, true},
		{"a Pod of a Job that has ended", endedForJob, false},
		{"a Pod of a ReplicaSet", `{"metadata":{"ownerReferences":[{"kind":"ReplicaSet"}]},"status":{"phase":"Running"}}`, false},
		{"a Pod that is not restarted", `{"metadata":{},"spec":{"nodeName":"node-1","restartPolicy":"Never"},"status":{"phase":"Running"}}`, true},
		{"a Pod that is restarted only after a failure", `{"metadata":{},"spec":{"nodeName":"node-1","restartPolicy":"OnFailure"},"status":{"phase":"Running"}}`, true},
		{"a Pod on no node", `{"metadata":{},"spec":{"restartPolicy":"Never"},"status":{"phase":"Running"}}`, false},
		{"a Pod that is always restarted", `{"metadata":{},"spec":{"nodeName":"node-1","restartPolicy":"Always"},"status":{"phase":"Running"}}`, false},
		{"a Pod without an owner", `{"metadata":{},"status":{"phase":"Running"}}`, false},
		{"a Pod that is being deleted", `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","ownerReferences":[{"kind":"Job"}]},"status":{"phase":"Running"}}`, false},
		{"a Pod that is a process", `{"metadata":{"ownerReferences":[{"kind":"Job"}]},"spec":{"nodeName":"local"},"status":{"phase":"Running"}}`, false},
	} {
		if got := runsToEnd(somePod, parsed(t, c.object)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if runsToEnd(somePod, nil) {
		t.Error("a Pod that is gone counts as running")
	}
}

// The wait before the end of a Pod is Koboshi's own pause, not one of the controller.
func TestTheWaitBeforeAPodOfAJobEndsIsNoPause(t *testing.T) {
	out := paused(time.Millisecond, 1300*time.Millisecond)
	end := &out.History.Changes[2]
	end.Ref, end.Before, end.After = somePod, parsed(t, runningForJob), parsed(t, endedForJob)
	if got := window(out, &scenario.Scenario{}); got != shortestWindow {
		t.Errorf("%v", got)
	}
	end.After = nil // the controller deleted the Pod
	if got := window(out, &scenario.Scenario{}); got < time.Second {
		t.Errorf("after a deletion: %v", got)
	}
}

func TestAWriteThatFailedHasYetToBeRepeated(t *testing.T) {
	write := func(verb string, code int) trace.Entry {
		return trace.Entry{Call: &trace.Call{Verb: verb, Code: code, Target: trace.Target{Resource: "configmaps"}}}
	}
	read := trace.Entry{Call: &trace.Call{Verb: "get", Code: 500, Target: trace.Target{Resource: "configmaps"}}}
	lease := trace.Entry{Call: &trace.Call{Verb: "update", Code: 409, Target: trace.Target{Group: "coordination.k8s.io", Resource: "leases"}}}
	for _, c := range []struct {
		name    string
		entries []trace.Entry
		want    bool
	}{
		{"no write", []trace.Entry{read}, false},
		{"the write succeeded", []trace.Entry{write("create", 409), write("create", 201), read}, false},
		{"the write failed", []trace.Entry{write("create", 201), write("update", 409), read, lease}, true},
		{"the object existed already", []trace.Entry{write("create", 409), read}, false},
		{"the answer was lost", []trace.Entry{write("create", 0)}, true},
		{"the deletion was not necessary", []trace.Entry{write("create", 201), write("delete", 404)}, false},
	} {
		if got := lastWriteFailed(c.entries); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestAWebhookMayRefuseTheEndOfAPod(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j"}}},
		Spec:       corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, refusal := range []error{
		apierrors.NewBadRequest("admission webhook denied the request"),
		apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil),
		apierrors.NewForbidden(podResource.GroupResource(), "p", nil),
	} {
		client := fake.NewSimpleDynamicClient(clientscheme.Scheme, pod)
		client.PrependReactor("patch", "pods", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
		l := &Lab{client: client, store: newStore(nil)}
		l.store.take(1, []storage.Commit{{Revision: 1, Key: "/p", Value: encoded(t, corev1.SchemeGroupVersion.WithKind("Pod"), pod.DeepCopy())}})
		if len(l.store.find(runsToEnd)) != 1 {
			t.Fatal("the store has no Pod that runs for a Job")
		}
		if ended, err := l.endPods(t.Context(), l.store.find(runsToEnd)); ended || err != nil {
			t.Errorf("%v: ended %t, %v", refusal, ended, err)
		}
	}
}

// podsOfJobsEnd is part of TestOnARealPlane.
func podsOfJobsEnd(t *testing.T, l *Lab) {
	_, job := sample(t, l, `{apiVersion: batch/v1, kind: Job, metadata: {name: j},
	  spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`)
	pods, pod := sample(t, l, `{apiVersion: v1, kind: Pod, metadata: {name: p, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: `+
		string(job.GetUID())+`}]}, spec: {nodeName: node-1, containers: [{name: c, image: i}]}}`)
	pod.Object["status"] = map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{
		"name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": int64(0), "state": map[string]any{"running": map[string]any{}},
	}}}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := l.caughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []bool{true, false} {
		ended, err := l.endPods(t.Context(), l.store.find(runsToEnd))
		if err != nil {
			t.Fatal(err)
		}
		phase := ""
		for _, o := range l.store.find(func(ref state.Ref, _ state.Object) bool { return ref == somePod }) {
			phase, _ = o["status"].(map[string]any)["phase"].(string)
		}
		if ended != wanted || phase != "Succeeded" {
			t.Errorf("ended %v, want %v, and the Pod is %s", ended, wanted, phase)
		}
	}
}

func TestAPodThatIsAlwaysReplacedRunsOn(t *testing.T) {
	pods := map[state.Ref]state.Object{somePod: parsed(t, `{"metadata":{"ownerReferences":[{"kind":"VM","name":"v"}]}}`)}
	n := rounds{}
	for range mostRounds {
		if !n.allows(somePod, pods[somePod], mostRounds) {
			t.Fatal("the Pod runs on too early")
		}
		n.add(pods)
	}
	if n.allows(somePod, pods[somePod], mostRounds) {
		t.Errorf("the Pod ends after %d rounds", mostRounds)
	}
	other := parsed(t, `{"metadata":{"ownerReferences":[{"kind":"VM","name":"w"}]}}`)
	job := parsed(t, runningForJob)
	for range 2 * mostRounds {
		n.add(map[state.Ref]state.Object{somePod: job})
	}
	if !n.allows(somePod, other, mostRounds) || !n.allows(somePod, job, mostRounds) {
		t.Error("Pods of another owner, or of a Job, do not end")
	}
}

package nodes

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
)

var podResource = internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}

func TestPodsOfJobsRunForOneSecondOrUntilTheyAreEnded(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		got, err := stages(held)
		if err != nil {
			t.Fatal(err)
		}
		var delays []time.Duration
		for _, stage := range got[podResource] {
			if stage.Name == "pod-complete" {
				delays = append(delays, time.Duration(*stage.Spec.Delay.DurationMilliseconds)*time.Millisecond)
			}
		}
		want := []time.Duration{time.Second}
		if held {
			want = nil
		}
		if diff := cmp.Diff(want, delays); diff != "" {
			t.Errorf("held %v (-want +got):\n%s", held, diff)
		}
	}
}

func TestAnEndedPodOfAJobLooksLikeThatOfAKubelet(t *testing.T) {
	t.Parallel()
	began := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.128.0.1", StartTime: &began,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Image: "i", Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}}},
		},
	}
	ended := patched(t, pod)
	if ended.Status.Phase != corev1.PodSucceeded || ended.Status.PodIP != "10.128.0.1" || ended.UID != "u" {
		t.Errorf("%+v", ended)
	}
	state := ended.Status.ContainerStatuses[0].State
	if state.Running != nil || state.Terminated == nil || state.Terminated.ExitCode != 0 || !state.Terminated.StartedAt.Equal(&began) {
		t.Errorf("the container's state is %+v", state)
	}
	conditions := map[corev1.PodConditionType]string{}
	for _, c := range ended.Status.Conditions {
		conditions[c.Type] = string(c.Status) + " " + c.Reason
	}
	want := map[corev1.PodConditionType]string{"Initialized": "True ", "Ready": "False PodCompleted", "ContainersReady": "False PodCompleted"}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// patched applies the patch that ends the Pod, as the API server would, and returns the result.
func patched(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := EndOfJobPod(object)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, pod)
	if err != nil {
		t.Fatal(err)
	}
	ended := &corev1.Pod{}
	if err := json.Unmarshal(after, ended); err != nil {
		t.Fatal(err)
	}
	return ended
}

package ready

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// usual are the reasons of containers that wait because they are only starting.
var usual = []string{"", "ContainerCreating", "PodInitializing"}

// PodReason returns why the first of the Pods that are not ready does not get ready, or an empty
// text if no Pod has a reason yet.
func PodReason(list []unstructured.Unstructured) string {
	for i := range list {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, &pod); err != nil || pod.DeletionTimestamp != nil {
			continue
		}
		if reason := reasonOf(&pod); reason != "" {
			return fmt.Sprintf("Pod %s: %s", pod.Name, reason)
		}
	}
	return ""
}

func reasonOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if reason := containerReason(c); reason != "" {
			return fmt.Sprintf("container %s: %s", c.Name, reason)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return pod.Status.Reason + ": " + pod.Status.Message
	}
	return ""
}

func containerReason(c corev1.ContainerStatus) string {
	switch {
	case c.State.Waiting != nil && !slices.Contains(usual, c.State.Waiting.Reason):
		reason := c.State.Waiting.Reason
		if c.State.Waiting.Message != "" {
			reason += ": " + c.State.Waiting.Message
		}
		if last := c.LastTerminationState.Terminated; last != nil {
			reason += fmt.Sprintf(" (its last exit code was %d)", last.ExitCode)
		}
		return reason
	case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
		return fmt.Sprintf("it ended with exit code %d (%s)", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
	case c.State.Running != nil && !c.Ready:
		return "it runs, but is not ready"
	}
	return ""
}

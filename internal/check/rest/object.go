package rest

import (
	"fmt"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// IsUnfinished reports whether upstream's Job controller has yet to record the result of a
// finished Job, or of a finished Pod of a Job. The Job controller checks for results only
// once a second.
func IsUnfinished(ref state.Ref, object state.Object) bool {
	status, _ := object["status"].(map[string]any)
	if isPod(ref) && (status["phase"] == "Succeeded" || status["phase"] == "Failed") {
		metadata, _ := object["metadata"].(map[string]any)
		finalizers, _ := metadata["finalizers"].([]any)
		return slices.Contains(finalizers, any("batch.kubernetes.io/job-tracking"))
	}
	if ref.Kind != "Job" || ref.Group != "batch" {
		return false
	}
	counting, _ := status["uncountedTerminatedPods"].(map[string]any)
	reached := map[string]bool{}
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["status"] == "True" {
			reached[fmt.Sprint(c["type"])] = true
		}
	}
	decided := reached["SuccessCriteriaMet"] || reached["FailureTarget"]
	return len(counting) > 0 || decided && !reached["Complete"] && !reached["Failed"]
}

// IsPending reports whether a Pod is bound to a node, but has not started. On a simulated
// node, such a Pod starts soon.
func IsPending(ref state.Ref, object state.Object) bool {
	if !isPod(ref) || object.Deleting() {
		return false
	}
	spec, _ := object["spec"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	node, _ := spec["nodeName"].(string)
	return node != "" && (status["phase"] == nil || status["phase"] == "Pending")
}

func isPod(ref state.Ref) bool { return ref.Kind == "Pod" && ref.Group == "" }

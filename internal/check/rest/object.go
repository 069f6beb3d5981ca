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

// IsBehind reports whether the status of an object says that its controller has not observed the current
// generation yet. See status.observedGeneration in the API conventions of Kubernetes.
func IsBehind(_ state.Ref, object state.Object) bool {
	if object.Deleting() {
		return false
	}
	metadata, _ := object["metadata"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	observed, written := number(status["observedGeneration"])
	current, counted := number(metadata["generation"])
	return written && counted && observed < current
}

// number reads a number, whichever decoder has made it.
func number(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

func isPod(ref state.Ref) bool { return ref.Kind == "Pod" && ref.Group == "" }

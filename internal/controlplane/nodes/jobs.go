package nodes

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

// podComplete is the stage that ends the Pods of Jobs.
//
//go:embed pod-complete.yaml
var podComplete string

// EndOfJobPod returns a strategic merge patch of the subresource status. The patch ends a running
// Pod of a Job, as the stage of an engine without HoldJobs would. The patch fails if another Pod
// has taken the name.
func EndOfJobPod(pod map[string]any) ([]byte, error) {
	stage, err := readStage(podComplete)
	if err != nil {
		return nil, err
	}
	status, err := gotpl.NewRenderer(nil).ToJSON(stage.Spec.Steps[0].Patch.Template, pod)
	if err != nil {
		return nil, fmt.Errorf("rendering the end of a Pod: %w", err)
	}
	metadata, _ := pod["metadata"].(map[string]any)
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": metadata["uid"]},
		"status":   json.RawMessage(status),
	})
}

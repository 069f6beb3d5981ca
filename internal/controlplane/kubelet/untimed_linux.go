package kubelet

import (
	"context"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// untimed omits the time at which the state of a Pod was read. If the time is
// set and the feature gate EventedPLEG is on, upstream's v1.37 uses the
// containers in that state, but ignores which of them belong to the current
// sandbox. It would then run init containers forever. Without the time,
// upstream asks for the state of each container.
type untimed struct{ criapi.RuntimeService }

// PodSandboxStatus returns the state of a Pod without the time and the
// containers.
func (u untimed) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	response, err := u.RuntimeService.PodSandboxStatus(ctx, id, verbose)
	if response != nil {
		response.Timestamp, response.ContainersStatuses = 0, nil
	}
	return response, err
}

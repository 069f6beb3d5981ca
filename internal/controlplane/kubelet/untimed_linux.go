package kubelet

import (
	"context"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// untimed omits the time at which the state of a Pod was read. With that time,
// and with the feature gate EventedPLEG, upstream's v1.37 uses the containers
// that come with the state and forgets which of them belong to the current
// sandbox: it would run init containers for ever. Without the time, it asks for
// each container.
type untimed struct{ criapi.RuntimeService }

// PodSandboxStatus returns the state of a Pod, without its time.
func (u untimed) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	response, err := u.RuntimeService.PodSandboxStatus(ctx, id, verbose)
	if response != nil {
		response.Timestamp, response.ContainersStatuses = 0, nil
	}
	return response, err
}

package kubelet

import (
	"context"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// untimed leaves out when the state of a Pod was read. With that time, and with
// the feature gate EventedPLEG, upstream's v1.37 takes the containers that come
// with the state and forgets which of them are the present sandbox's: it would
// run init containers for ever. Without it, it asks for each container.
type untimed struct{ criapi.RuntimeService }

// PodSandboxStatus tells the state of a Pod.
func (u untimed) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	response, err := u.RuntimeService.PodSandboxStatus(ctx, id, verbose)
	if response != nil {
		response.Timestamp, response.ContainersStatuses = 0, nil
	}
	return response, err
}

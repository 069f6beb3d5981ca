package kubelet

import (
	"context"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// untimed omits the timestamp from the state of a Pod. If the state has a
// timestamp and the feature gate EventedPLEG is on, the kubelet of v1.37 takes the
// containers from the state. The kubelet then ignores which containers belong to the
// current sandbox, and would run init containers forever. If the state has no timestamp,
// the kubelet asks for the state of each container separately.
type untimed struct{ criapi.RuntimeService }

// PodSandboxStatus returns the state of a Pod without its timestamp and its
// containers.
func (u untimed) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	response, err := u.RuntimeService.PodSandboxStatus(ctx, id, verbose)
	if response != nil {
		response.Timestamp, response.ContainersStatuses = 0, nil
	}
	return response, err
}

package kubelet

import (
	"context"
	"testing"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type timed struct{ criapi.RuntimeService }

func (timed) PodSandboxStatus(context.Context, string, bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return &runtimeapi.PodSandboxStatusResponse{Timestamp: 1, ContainersStatuses: []*runtimeapi.ContainerStatus{{}}}, nil
}

func TestUpstreamAsksForTheContainersOfAPodItself(t *testing.T) {
	t.Parallel()
	response, err := untimed{timed{}}.PodSandboxStatus(t.Context(), "", false)
	if err != nil || response.Timestamp != 0 || response.ContainersStatuses != nil {
		t.Errorf("the response is %v, %v", response, err)
	}
}

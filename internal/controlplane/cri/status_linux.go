package cri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Version returns the name and version that nodes show for the runtime.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version: "0.1.0", RuntimeName: "koboshi", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1",
	}, nil
}

// Status always reports that the runtime is ready, because it is ready once
// New returns.
func (r *Runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true},
			{Type: runtimeapi.NetworkReady, Status: true},
		}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}}},
		Features:        &runtimeapi.RuntimeFeatures{},
	}, nil
}

// RuntimeConfig names a cgroup driver only because the response requires one;
// no driver is used.
func (r *Runtime) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{
		Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS},
	}, nil
}

// UpdateRuntimeConfig ignores the node's Pod CIDR; addresses come from
// Config.Subnet.
func (r *Runtime) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error { return nil }

// UpdateContainerResources changes nothing: limits are ignored here.
func (r *Runtime) UpdateContainerResources(_ context.Context, id string, _ *runtimeapi.ContainerResources) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.container(id)
	return err
}

// UpdatePodSandboxResources changes nothing: limits are ignored here.
func (r *Runtime) UpdatePodSandboxResources(_ context.Context, request *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.sandbox(request.GetPodSandboxId())
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, err
}

var errCheckpoint = status.Error(codes.Unimplemented, "programs on this machine cannot be checkpointed or restored")

// CheckpointContainer is not supported.
func (r *Runtime) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return errCheckpoint
}

// CheckpointPod is not supported.
func (r *Runtime) CheckpointPod(context.Context, *runtimeapi.CheckpointPodRequest) error {
	return errCheckpoint
}

// RestorePod is not supported.
func (r *Runtime) RestorePod(context.Context, *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return nil, errCheckpoint
}

package kubelet

import (
	"context"
	"net"
	"slices"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerRuntime is the interface of the runtime in package cri.
type containerRuntime interface {
	criapi.RuntimeService
	criapi.ImageManagerService
}

// tellAPIServer returns a runtime that changes the environment variables from which
// client-go in a Pod reads the address of the API server.
func (c Config) tellAPIServer(r criapi.RuntimeService) criapi.RuntimeService {
	host, port, err := net.SplitHostPort(c.APIServer)
	if err != nil {
		return r
	}
	return reachable{RuntimeService: r, serviceIP: c.ServiceIP, host: host, port: port}
}

type reachable struct {
	criapi.RuntimeService
	serviceIP, host, port string
}

// CreateContainer replaces the variables that the kubelet sets for the Service
// "kubernetes". CreateContainer does not change variables that the Pod sets itself.
func (r reachable) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	r.replace(config.GetEnvs())
	return r.RuntimeService.CreateContainer(ctx, sandbox, config, sandboxConfig)
}

func (r reachable) replace(env []*runtimeapi.KeyValue) {
	unreachable := slices.ContainsFunc(env, func(v *runtimeapi.KeyValue) bool {
		return v.Key == "KUBERNETES_SERVICE_HOST" && string(v.Value) == r.serviceIP
	})
	if !unreachable {
		return
	}
	for _, v := range env {
		switch v.Key {
		case "KUBERNETES_SERVICE_HOST":
			v.Value = []byte(r.host)
		case "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS":
			v.Value = []byte(r.port)
		}
	}
}

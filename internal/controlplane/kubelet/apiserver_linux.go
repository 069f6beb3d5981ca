package kubelet

import (
	"context"
	"net"
	"slices"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerRuntime is the interface of package cri's runtime.
type containerRuntime interface {
	criapi.RuntimeService
	criapi.ImageManagerService
}

// tellAPIServer makes the variables that client-go reads in a Pod point to the
// API server.
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

// CreateContainer replaces the kubelet's variables for the Service
// "kubernetes". The Pod's own variables stay.
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

package cri

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/binds"
)

// A sandbox holds the address that a Pod's containers share. Only the field
// ready ever changes.
type sandbox struct {
	id      string
	config  *runtimeapi.PodSandboxConfig
	created time.Time
	address netip.Addr
	host    bool // set for hostNetwork
	ready   bool // true until the sandbox is stopped
	// listeners has the ports on which the programs of the Pod listen.
	listeners *binds.Pod
}

// loopback is the address of Pods with hostNetwork.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// RunPodSandbox gives the Pod an address.
func (r *Runtime) RunPodSandbox(_ context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	if err := refuseSandbox(config, handler); err != nil {
		return "", err
	}
	s := &sandbox{id: newID(), config: config, created: time.Now(), ready: true, address: loopback}
	s.host = config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return "", errClosing
	}
	if !s.host {
		var err error
		if s.address, err = r.newAddress(); err != nil {
			return "", err
		}
	}
	s.listeners = binds.NewPod(s.address)
	r.sandboxes[s.id] = s
	r.publish(event{runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, s.id, s})
	r.publish(event{runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, s.id, s})
	return s.id, nil
}

var errClosing = errors.New("the runtime is stopping")

// newAddress returns the next free address in turn, so that a released address
// stays unused for a long time: a client that still uses the old address must
// not reach another Pod. The first two addresses of the network and the last
// one are never used.
func (r *Runtime) newAddress() (netip.Addr, error) {
	first := r.config.Subnet.Masked().Addr().Next().Next()
	at := r.last
	for range 1 << (32 - r.config.Subnet.Bits()) {
		at = at.Next()
		if !r.config.Subnet.Contains(at.Next()) || at.Less(first) {
			at = first
		}
		if !r.taken[at] {
			r.taken[at], r.last = true, at
			return at, nil
		}
	}
	return netip.Addr{}, errors.New("all Pod addresses are in use: delete some Pods")
}

// StopPodSandbox kills the Pod's containers and releases its address.
func (r *Runtime) StopPodSandbox(ctx context.Context, id string) error {
	r.mu.Lock()
	s := r.sandboxes[id]
	if s == nil {
		r.mu.Unlock()
		return nil
	}
	stopped := s.ready
	s.ready = false
	running := r.running(func(p *process) bool { return p.sandbox == s })
	r.mu.Unlock()
	for _, p := range running {
		p.kill()
	}
	for _, p := range running {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if stopped {
		delete(r.taken, s.address)
		r.publish(event{runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, id, s})
	}
	return nil
}

// RemovePodSandbox stops the Pod, and forgets it and its containers.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[id]
	if s == nil {
		return nil
	}
	for _, p := range r.containers {
		if p.sandbox == s {
			delete(r.containers, p.id)
			r.publish(event{runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, p.id, s})
		}
	}
	delete(r.sandboxes, id)
	r.publish(event{runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, id, s})
	return nil
}

func (r *Runtime) sandbox(id string) (*sandbox, error) {
	if s := r.sandboxes[id]; s != nil {
		return s, nil
	}
	// The kubelet expects this status code.
	return nil, status.Errorf(codes.NotFound, "there is no sandbox %s", id)
}

// PodSandboxStatus returns the status of the Pod and its containers.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.sandbox(id)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStatusResponse{
		Status: s.status(), ContainersStatuses: r.statuses(s), Timestamp: time.Now().UnixNano(),
	}, nil
}

// The callers of the methods below must hold r.mu.

func (r *Runtime) statuses(s *sandbox) (all []*runtimeapi.ContainerStatus) {
	for _, p := range r.containers {
		if p.sandbox == s {
			all = append(all, p.status())
		}
	}
	return all
}

func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	return &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created.UnixNano(),
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: s.address.String()},
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions(),
		}},
		Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
	}
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

// ListPodSandbox lists the sandboxes that match the filter.
func (r *Runtime) ListPodSandbox(_ context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*runtimeapi.PodSandbox
	for _, s := range r.sandboxes {
		if wanted := filter.GetState(); wanted != nil && wanted.GetState() != s.state() {
			continue
		}
		if !matches(filter.GetId(), s.id) || !selects(filter.GetLabelSelector(), s.config.GetLabels()) {
			continue
		}
		all = append(all, &runtimeapi.PodSandbox{
			Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created.UnixNano(),
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		})
	}
	return all, nil
}

// matches reports whether a filter's ID is empty or equal to id.
func matches(wanted, id string) bool { return wanted == "" || wanted == id }

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if got, found := labels[key]; !found || got != value {
			return false
		}
	}
	return true
}

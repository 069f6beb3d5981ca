package cri

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// An event is a change of a container or a sandbox.
type event struct {
	what    runtimeapi.ContainerEventType
	id      string
	sandbox *sandbox
}

// backlog is the number of events that can wait for a watcher; further events
// are lost, which is harmless, because the kubelet also lists all containers
// periodically.
const backlog = 256

// publish sends an event to the watchers. The caller must hold r.mu.
func (r *Runtime) publish(e event) {
	for watcher := range r.watchers {
		select {
		case watcher <- e:
		default:
		}
	}
}

// GetContainerEvents sends events until the context ends.
func (r *Runtime) GetContainerEvents(ctx context.Context, to chan *runtimeapi.ContainerEventResponse, connected func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	watcher := make(chan event, backlog)
	r.mu.Lock()
	r.watchers[watcher] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, watcher)
	}()
	if connected != nil {
		connected(nil) // there is no connection
	}
	for {
		select {
		case e := <-watcher:
			select {
			case to <- r.describe(e):
			case <-ctx.Done():
				return ctx.Err()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// describe converts an event for the kubelet and adds the current status of
// the Pod.
func (r *Runtime) describe(e event) *runtimeapi.ContainerEventResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &runtimeapi.ContainerEventResponse{
		ContainerId: e.id, ContainerEventType: e.what, CreatedAt: time.Now().UnixNano(),
		PodSandboxStatus: e.sandbox.status(), ContainersStatuses: r.statuses(e.sandbox),
	}
}

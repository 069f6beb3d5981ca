package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/container"
)

// CreateContainer records a container, or refuses it if a setting cannot be honored.
func (r *Runtime) CreateContainer(_ context.Context, sandboxID string, config *runtimeapi.ContainerConfig, pod *runtimeapi.PodSandboxConfig) (string, error) {
	if err := r.refuseContainer(config); err != nil {
		return "", err
	}
	program, found := r.program(config.GetImage())
	if !found {
		return "", unmapped(imageName(config.GetImage()))
	}
	if _, err := os.Lstat(program.File()); err != nil { // a link may lead to another file of the image
		return "", fmt.Errorf("finding the program for image %s: %w; build the program, or correct --run", program.Image, err)
	}
	p := &process{
		id: newID(), config: config, program: program, created: time.Now(), done: make(chan struct{}),
		user: identify(config.GetLinux().GetSecurityContext(), program),
	}
	if pod.GetLogDirectory() != "" && config.GetLogPath() != "" {
		p.logPath = filepath.Join(pod.GetLogDirectory(), config.GetLogPath())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if p.sandbox, err = r.sandbox(sandboxID); err != nil {
		return "", err
	}
	if !p.sandbox.ready {
		return "", fmt.Errorf("sandbox %s has been stopped", sandboxID)
	}
	r.containers[p.id] = p
	r.publish(event{runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, p.id, p.sandbox})
	return p.id, nil
}

// container returns a container by its ID. The caller must hold r.mu.
func (r *Runtime) container(id string) (*process, error) {
	if p := r.containers[id]; p != nil {
		return p, nil
	}
	// The kubelet expects this status code.
	return nil, status.Errorf(codes.NotFound, "there is no container %s", id)
}

// live returns a running container.
func (r *Runtime) live(id string) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.container(id)
	if err == nil && !p.runs() {
		err = fmt.Errorf("container %s is not running", p.config.GetMetadata().GetName())
	}
	return p, err
}

// running lists the running containers for which the function returns true. The
// caller must hold r.mu.
func (r *Runtime) running(which func(*process) bool) (all []*process) {
	for _, p := range r.containers {
		if p.runs() && which(p) {
			all = append(all, p)
		}
	}
	return all
}

// StartContainer starts the program and returns once it is running.
func (r *Runtime) StartContainer(_ context.Context, id string) error {
	p, err := r.claim(id)
	if err != nil {
		return err
	}
	started, err := r.start(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	p.starting = false
	if err != nil {
		defer r.alive.Done()
		now := time.Now()
		p.started, p.finished = now, now
		p.state, p.exitCode = runtimeapi.ContainerState_CONTAINER_EXITED, container.ExitFailed
		p.reason, p.message = reasonStartError, err.Error()
		close(p.done)
		r.publish(event{runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, p.id, p.sandbox})
		return err
	}
	p.main, p.streams, p.log = started.main, started.streams, started.log
	p.state, p.started = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now()
	r.publish(event{runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, p.id, p.sandbox})
	if r.closing || !p.sandbox.ready || r.containers[id] != p {
		p.kill()
	}
	go r.await(p, started)
	return nil
}

// claim ensures that only one caller starts the container.
func (r *Runtime) claim(id string) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.container(id)
	switch {
	case err != nil:
		return nil, err
	case r.closing:
		return nil, errClosing
	case p.state != runtimeapi.ContainerState_CONTAINER_CREATED || p.starting:
		return nil, errors.New("the container has already been started")
	case !p.sandbox.ready:
		return nil, errors.New("the sandbox of the container has been stopped")
	}
	p.starting = true
	r.alive.Add(1)
	return p, nil
}

// await waits until the program ends, and records its exit.
func (r *Runtime) await(p *process, running *started) {
	defer r.alive.Done()
	state, err := running.main.Wait()
	finished := time.Now()
	// The log must be complete before the end of the program is reported.
	running.streams.finish()
	if running.log != nil {
		_ = running.log.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.streams, p.log = nil, nil
	p.state, p.finished, p.exitCode = runtimeapi.ContainerState_CONTAINER_EXITED, finished, exitCode(state, err)
	p.reason = reasonCompleted
	if p.exitCode != 0 {
		p.reason = reasonError
	}
	close(p.done)
	r.publish(event{runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, p.id, p.sandbox})
}

// StopContainer asks the program to end and kills it after the grace period, in
// seconds.
func (r *Runtime) StopContainer(ctx context.Context, id string, grace int64) error {
	p, err := r.live(id)
	if status.Code(err) == codes.NotFound || p != nil && err != nil {
		return nil // no longer running
	}
	if grace > 0 {
		p.signal(p.stopSignal())
		timer := time.NewTimer(time.Duration(grace) * time.Second)
		defer timer.Stop()
		select {
		case <-p.done:
			return nil
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.kill()
	return p.wait(ctx)
}

// RemoveContainer forgets a container, and kills it first if it is running. The
// kubelet removes the container's log.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	if err := r.StopContainer(ctx, id, 0); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.containers[id]; p != nil {
		delete(r.containers, id)
		r.publish(event{runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, id, p.sandbox})
	}
	return nil
}

// ListContainers lists the containers that match the filter.
func (r *Runtime) ListContainers(_ context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*runtimeapi.Container
	for _, p := range r.containers {
		if wanted := filter.GetState(); wanted != nil && wanted.GetState() != p.state {
			continue
		}
		if !matches(filter.GetId(), p.id) || !matches(filter.GetPodSandboxId(), p.sandbox.id) ||
			!selects(filter.GetLabelSelector(), p.config.GetLabels()) {
			continue
		}
		all = append(all, &runtimeapi.Container{
			Id: p.id, PodSandboxId: p.sandbox.id, Metadata: p.config.GetMetadata(),
			Image: p.image(), ImageRef: imageID(p.program), ImageId: imageID(p.program), State: p.state,
			CreatedAt: p.created.UnixNano(), Labels: p.config.GetLabels(), Annotations: p.config.GetAnnotations(),
		})
	}
	return all, nil
}

// ContainerStatus returns the container's status.
func (r *Runtime) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.container(id)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatusResponse{Status: p.status()}, nil
}

// ReopenContainerLog continues the log in a new file after the kubelet has
// renamed the old one.
func (r *Runtime) ReopenContainerLog(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.container(id)
	if err != nil {
		return err
	}
	if p.log == nil {
		return errors.New("the container is not writing a log because it is not running")
	}
	return p.log.Reopen()
}

package cri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/logs"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

// A process is a container.
//
//	created ──StartContainer──▶ running ──its end──▶ exited
//	   └──────it fails to start (exit code 128)────────▲
type process struct {
	id      string
	sandbox *sandbox
	config  *runtimeapi.ContainerConfig
	program programs.Program
	logPath string // empty if there is no log
	user    identity
	created time.Time
	done    chan struct{} // closed once the process has exited and its log is complete

	// Runtime.mu guards the following fields. Code that has checked under the
	// lock that the container is running may use main without the lock.
	state             runtimeapi.ContainerState
	starting          bool
	started, finished time.Time
	exitCode          int32
	reason, message   string
	main              *os.Process // set when the container starts
	streams           *streams    // set while it is running
	log               *logs.File  // set while it is running
}

// identity is the user that the program sees inside the container. Outside the
// container, the program always runs as the invoking user.
type identity struct{ uid, gid int64 }

// identify returns the program's identity by the rules of other container
// runtimes: without an explicit group, a user other than the image's user gets
// group 0. The user of the image has a group with the same number.
func identify(security *runtimeapi.LinuxContainerSecurityContext, program programs.Program) identity {
	who := identity{program.UID(), program.UID()}
	if user := security.GetRunAsUser(); user != nil && user.GetValue() != who.uid {
		who = identity{user.GetValue(), 0}
	}
	if group := security.GetRunAsGroup(); group != nil {
		who.gid = group.GetValue()
	}
	return who
}

// adopt makes this identity the only user of the new user namespace in which
// the process runs. In the namespace of the caller, the process still runs as
// root.
func (i identity) adopt(pid int) error {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	for _, write := range []struct{ file, text string }{
		{"setgroups", "deny"}, // must precede gid_map, which may not be written otherwise
		{"uid_map", fmt.Sprintf("%d 0 1", i.uid)},
		{"gid_map", fmt.Sprintf("%d 0 1", i.gid)},
	} {
		if err := os.WriteFile(filepath.Join(dir, write.file), []byte(write.text), 0); err != nil {
			return fmt.Errorf("creating the container's user: %w", err)
		}
	}
	return nil
}

// These are the reasons for a container's exit, as kubectl shows them.
const (
	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonStartError = "StartError"
)

// stopSignal converts the API's stop signal to a signal of the system.
func (p *process) stopSignal() syscall.Signal {
	wanted := p.config.GetStopSignal()
	if wanted == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return unix.SIGTERM
	}
	name := wanted.String()[len("SIGNAL_"):]
	if number := unix.SignalNum(name); number != 0 {
		return number
	}
	// All other names are names of real-time signals, such as SIGRTMINPLUS3.
	var n int
	if _, err := fmt.Sscanf(name, "SIGRTMINPLUS%d", &n); err == nil || name == "SIGRTMIN" {
		return syscall.Signal(firstRealTime + n)
	}
	if _, err := fmt.Sscanf(name, "SIGRTMAXMINUS%d", &n); err == nil || name == "SIGRTMAX" {
		return syscall.Signal(lastRealTime - n)
	}
	return unix.SIGTERM
}

// These constants are the first and the last real-time signal that the C library leaves to
// programs. It keeps the signals 32 and 33 for itself.
const (
	firstRealTime = 34
	lastRealTime  = 64
)

// signal sends a signal to the program. As pid 1 of a container, a program
// ignores signals for which it has no handler.
func (p *process) signal(s syscall.Signal) {
	_ = p.main.Signal(s)
}

// kill ends the program together with all processes in its pid namespace.
func (p *process) kill() { p.signal(unix.SIGKILL) }

// wait waits until the container has exited.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for container %s to end: %w", p.config.GetMetadata().GetName(), ctx.Err())
	}
}

// runs reports whether the container is running. The caller must hold
// Runtime.mu.
func (p *process) runs() bool { return p.state == runtimeapi.ContainerState_CONTAINER_RUNNING }

// status returns the container's status. The caller must hold Runtime.mu.
func (p *process) status() *runtimeapi.ContainerStatus {
	return &runtimeapi.ContainerStatus{
		Id: p.id, Metadata: p.config.GetMetadata(), State: p.state,
		CreatedAt: p.created.UnixNano(), StartedAt: nanoseconds(p.started), FinishedAt: nanoseconds(p.finished),
		ExitCode: p.exitCode, Reason: p.reason, Message: p.message,
		Image: p.image(), ImageRef: imageID(p.program), ImageId: imageID(p.program),
		Labels: p.config.GetLabels(), Annotations: p.config.GetAnnotations(),
		Mounts: p.config.GetMounts(), LogPath: p.logPath,
		Resources:  &runtimeapi.ContainerResources{Linux: p.config.GetLinux().GetResources()},
		User:       &runtimeapi.ContainerUser{Linux: &runtimeapi.LinuxContainerUser{Uid: p.user.uid, Gid: p.user.gid, SupplementalGroups: []int64{p.user.gid}}},
		StopSignal: p.config.GetStopSignal(),
	}
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// image returns the image as written in the Pod.
func (p *process) image() *runtimeapi.ImageSpec {
	return &runtimeapi.ImageSpec{Image: imageName(p.config.GetImage()), UserSpecifiedImage: imageName(p.config.GetImage())}
}

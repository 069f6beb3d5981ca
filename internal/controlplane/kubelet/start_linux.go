package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// The kubelet process inherits two pipes.
const (
	lifelineFD = 3 // carries the Config; the process ends when this pipe is closed
	reportFD   = 4 // carries the report
)

// A report is sent once by the kubelet process. The report is empty if the kubelet is set up, and
// otherwise gives the reason for the failure.
type report struct {
	Forbidden bool   `json:"forbidden,omitempty"`
	Error     string `json:"error,omitempty"`
	Port      int    `json:"port,omitempty"` // of the kubelet
}

// Process is a running kubelet.
type Process struct {
	cmd      *exec.Cmd
	lifeline *os.File
	port     int
	ended    chan struct{}
	err      error // valid once ended is closed
}

// Start runs a kubelet whose output, including its log, goes to logs. Start returns when the
// namespaces exist and the kubelet starts its work. If the system does not allow the namespaces to
// be created, Start returns ErrForbidden.
func Start(c Config, logs *os.File) (*Process, error) {
	lifelineEnd, lifeline, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the kubelet: %w", err)
	}
	reports, reportEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the kubelet: %w", err), lifelineEnd.Close(), lifeline.Close())
	}
	p := &Process{cmd: command(logs, lifelineEnd, reportEnd), lifeline: lifeline, ended: make(chan struct{})}
	err = p.cmd.Start()
	_, _ = lifelineEnd.Close(), reportEnd.Close()
	if err != nil {
		_, _ = lifeline.Close(), reports.Close()
		if forbids(err) {
			return nil, fmt.Errorf("%w (%w)", ErrForbidden, err)
		}
		return nil, fmt.Errorf("starting the kubelet: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.handOver(c, reports); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// command returns the command that runs this program in new namespaces. The
// command also gets a new session, so that input and signals from the terminal
// do not reach the kubelet or the programs that it runs.
func command(logs, lifeline, reports *os.File) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"koboshi", Verb}
	cmd.Stdout, cmd.Stderr = logs, logs
	cmd.ExtraFiles = []*os.File{lifeline, reports}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return cmd
}

// forbids reports whether err means that the kernel refuses to create a
// namespace: the limit is zero, a policy forbids it, or the kernel was built
// without such namespaces.
func forbids(err error) bool {
	return slices.ContainsFunc([]error{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.EINVAL, syscall.ENOSYS},
		func(no error) bool { return errors.Is(err, no) })
}

func (p *Process) handOver(c Config, reports io.ReadCloser) error {
	defer func() { _ = reports.Close() }()
	if err := json.NewEncoder(p.lifeline).Encode(c); err != nil {
		return fmt.Errorf("configuring the kubelet: %w", err)
	}
	var r report
	err := json.NewDecoder(reports).Decode(&r)
	switch {
	case err != nil:
		return errors.New("the kubelet ended before it was ready")
	case r.Forbidden:
		return fmt.Errorf("%w (%s)", ErrForbidden, r.Error)
	case r.Error != "":
		return fmt.Errorf("starting the kubelet: %s", r.Error)
	}
	p.port = r.Port
	return nil
}

// Port returns the port on which the kubelet listens.
func (p *Process) Port() int { return p.port }

// Kill ends the kubelet and all Pods at once, and returns when none of their processes is
// left.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.lifeline.Close()
}

// Ended returns a channel that is closed when the process and everything it
// started have ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err returns the error with which the process ended. Err returns nil while the process is running.
func (p *Process) Err() error {
	select {
	case <-p.ended:
	default:
		return nil
	}
	if p.err == nil {
		return errors.New("ended unexpectedly")
	}
	return p.err
}

// Stop ends the kubelet and all Pods, and returns when none of their processes
// is left. The programs are asked to stop, and those that do not stop in time
// are killed.
func (p *Process) Stop() {
	_ = p.lifeline.Close()
	select {
	case <-p.ended:
	case <-time.After(goodbye):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

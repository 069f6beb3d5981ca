package process

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/binds"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/thread"
)

// attributes puts the child into a separate process group, and makes the kernel kill the
// child when this process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// launch starts the command on a separate thread, which has the filter that gives the
// child its address. The thread stays until the child has exited, because Pdeathsig
// refers to the thread that started the child.
func (p *Process) launch(cmd *exec.Cmd, s Spec) error {
	started := make(chan error, 1)
	go func() {
		_ = thread.Run(func() error {
			err := p.startHere(cmd, s)
			started <- err
			if err == nil {
				awaitEnd(cmd.Process.Pid)
				p.finish(func() int {
					_ = cmd.Wait()
					return exitCode(cmd.ProcessState)
				})
			}
			return err
		})
	}()
	return <-started
}

func (p *Process) startHere(cmd *exec.Cmd, s Spec) error {
	if s.View != nil {
		if err := s.View.Enter(); err != nil {
			return err
		}
	}
	if s.Address.IsValid() {
		filtered, err := filter(s.Address)
		if err != nil {
			return err
		}
		if !filtered && binds.Nested() {
			cmd.Env = append(cmd.Env, binds.Variable+"="+s.Address.String())
			filtered = true
		}
		if filtered {
			p.address = s.Address
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pid = cmd.Process.Pid
	return nil
}

// filter installs a filter on this thread, which gives the address to the children of the
// thread. It reports whether the system supports the filter.
func filter(address netip.Addr) (bool, error) {
	if !address.Is4() || !address.IsLoopback() {
		return false, fmt.Errorf("%s is not an IPv4 loopback address", address)
	}
	// Without this attribute, only root may install a filter. The attribute and the filter
	// apply only to this thread.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return false, fmt.Errorf("setting no_new_privs: %w", err)
	}
	notifications, err := binds.Install()
	if errors.Is(err, binds.ErrUnavailable) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	// Serve returns after the last process that has the filter has exited. After an error in Serve,
	// bind fails in the child, and the child reports that itself.
	go func() { _ = binds.Serve(notifications, binds.NewPod(address)) }()
	return true, nil
}

// awaitEnd waits until the process has exited. It does not reap the process, so the
// process ID stays reserved.
func awaitEnd(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// signal sends a signal to the process group. It also sends SIGKILL to processes that have
// left the group, and waits until they are gone. While it waits, it holds the lock, so that
// the child is not reported as exited too early.
func (p *Process) signal(s syscall.Signal) {
	p.signals.Lock()
	defer p.signals.Unlock()
	if p.reaped {
		return
	}
	var astray []int
	if s == syscall.SIGKILL {
		// Find the descendants while their parents are alive; afterwards, only the mark
		// identifies descendants that have left the group.
		astray = handlesOf(descendants(p.pid))
	}
	_ = unix.Kill(-p.pid, s)
	end(astray)
}

//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// launch starts the command. This system cannot give the child a separate address.
func (p *Process) launch(cmd *exec.Cmd, _ Spec) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pid = cmd.Process.Pid
	go func() {
		_ = cmd.Wait()
		p.finish(func() int { return exitCode(cmd.ProcessState) })
	}()
	return nil
}

func (p *Process) signal(s syscall.Signal) {
	p.signals.Lock()
	defer p.signals.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.pid, s)
	}
}

// Descendants returns none, because this system does not list the children of a process.
func (p *Process) Descendants() []int { return nil }

// sweep kills the remaining processes of the process group.
func (p *Process) sweep() { _ = syscall.Kill(-p.pid, syscall.SIGKILL) }

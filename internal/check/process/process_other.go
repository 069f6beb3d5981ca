//go:build !unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

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

// signal kills the process, whatever the signal, because this system has no other signals.
func (p *Process) signal(syscall.Signal) {
	p.signals.Lock()
	defer p.signals.Unlock()
	if !p.reaped {
		if child, err := os.FindProcess(p.pid); err == nil {
			_ = child.Kill()
		}
	}
}

func (p *Process) sweep() {}

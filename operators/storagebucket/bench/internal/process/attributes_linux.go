package process

import "syscall"

// attributes make the kernel kill the child process if this process is killed and
// cannot stop it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

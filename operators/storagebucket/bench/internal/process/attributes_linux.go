package process

import "syscall"

// attributes returns attributes that make the kernel kill the child process if this process
// is killed and cannot stop the child itself.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

package rig

import "syscall"

// attributes make the kernel kill the child if its parent is killed and cannot stop it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

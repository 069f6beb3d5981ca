package rig

import "syscall"

// attributes make the kernel end a child whose parent was killed and could not stop it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

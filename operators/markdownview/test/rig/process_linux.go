package rig

import "syscall"

// attributes returns attributes with which the kernel kills the child when its parent ends,
// even if the parent is killed and cannot stop the child itself.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

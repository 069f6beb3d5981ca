package rig

import "syscall"

// attributes returns attributes that make the kernel kill the child when its parent ends,
// even if the parent is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

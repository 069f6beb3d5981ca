//go:build !linux

package process

import "syscall"

// attributes returns nil outside Linux. The measurements need Linux anyway.
func attributes() *syscall.SysProcAttr { return nil }

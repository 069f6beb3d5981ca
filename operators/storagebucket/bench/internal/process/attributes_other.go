//go:build !linux

package process

import "syscall"

// attributes are empty outside Linux. The measurements need Linux as well.
func attributes() *syscall.SysProcAttr { return nil }

//go:build !linux

package process

import "syscall"

// attributes need Linux, as do all measurements.
func attributes() *syscall.SysProcAttr { return nil }

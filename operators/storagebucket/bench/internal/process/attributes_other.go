//go:build !linux

package process

import "syscall"

// attributes need Linux, as does all that is measured.
func attributes() *syscall.SysProcAttr { return nil }

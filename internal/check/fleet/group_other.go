//go:build !unix

package fleet

import "syscall"

func ownGroup() *syscall.SysProcAttr { return nil }

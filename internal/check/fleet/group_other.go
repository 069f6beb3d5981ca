//go:build !unix

package fleet

import "syscall"

func ownGroup(attributes *syscall.SysProcAttr) *syscall.SysProcAttr { return attributes }

//go:build unix

package fleet

import "syscall"

// ownGroup makes the attributes, which may be nil, start a lab in a process group of its
// own, which the signals of a terminal do not reach. The parent process ends its labs in
// order.
func ownGroup(attributes *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attributes == nil {
		attributes = &syscall.SysProcAttr{}
	}
	attributes.Setpgid = true
	return attributes
}

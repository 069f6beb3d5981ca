//go:build unix

package fleet

import "syscall"

// ownGroup adds to attributes, which may be nil, that the signals of a terminal are kept
// from a lab. The parent process ends its labs in order.
func ownGroup(attributes *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attributes == nil {
		attributes = &syscall.SysProcAttr{}
	}
	attributes.Setpgid = true
	return attributes
}

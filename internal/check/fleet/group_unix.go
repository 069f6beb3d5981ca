//go:build unix

package fleet

import "syscall"

// ownGroup sets the attributes so that a lab starts in its own process group, which the signals of
// a terminal do not reach. The attributes may be nil. The parent process stops its labs gracefully
// instead.
func ownGroup(attributes *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attributes == nil {
		attributes = &syscall.SysProcAttr{}
	}
	attributes.Setpgid = true
	return attributes
}

//go:build unix

package fleet

import "syscall"

// ownGroup returns attributes that keep the signals of a terminal from a lab. The parent
// process ends its labs in order.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

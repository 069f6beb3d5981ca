//go:build !linux

package kubelet

import (
	"errors"
	"os"
)

var errLinux = errors.New("the kubelet needs Linux, because programs run in Linux namespaces; use a Linux virtual machine")

// Process is never created on this system.
type Process struct{}

// Start fails on this system.
func Start(Config, *os.File) (*Process, error) { return nil, errLinux }

// Ended is never closed.
func (*Process) Ended() <-chan struct{} { return nil }

// Err is always nil.
func (*Process) Err() error { return nil }

// Stop does nothing.
func (*Process) Stop() {}

// Port is always zero.
func (*Process) Port() int { return 0 }

// Kill does nothing.
func (*Process) Kill() {}

// Called reports whether this program was called as a kubelet.
func Called() bool { return false }

// Main is never called on this system.
func Main() int { return 1 }

//go:build !linux

package rig

import "syscall"

// attributes returns nil, because both this feature and Pods that run as processes need
// Linux.
func attributes() *syscall.SysProcAttr { return nil }

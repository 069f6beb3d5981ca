//go:build !linux

package rig

import "syscall"

// attributes returns nil, because only Linux can kill a child when its parent ends. Pods
// that run as processes need Linux anyway.
func attributes() *syscall.SysProcAttr { return nil }

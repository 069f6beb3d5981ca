//go:build !linux

package rig

import "syscall"

// attributes need Linux, as do Pods that are processes.
func attributes() *syscall.SysProcAttr { return nil }

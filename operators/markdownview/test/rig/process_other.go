//go:build !linux

package rig

import "syscall"

// attributes are empty, because both this feature and Pods that are processes need Linux.
func attributes() *syscall.SysProcAttr { return nil }

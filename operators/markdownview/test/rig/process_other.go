//go:build !linux

package rig

import "syscall"

// attributes are empty: the feature needs Linux, as do Pods that are processes.
func attributes() *syscall.SysProcAttr { return nil }

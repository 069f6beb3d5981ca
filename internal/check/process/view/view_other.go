//go:build !linux

package view

import "syscall"

// View does not exist on this system.
type View struct{}

// New returns ErrUnavailable.
func New(string, []Mount) (*View, error) { return nil, ErrUnavailable }

// Enter returns ErrUnavailable.
func (*View) Enter() error { return ErrUnavailable }

// Close does nothing.
func (*View) Close() error { return nil }

// Attributes returns nil.
func Attributes() *syscall.SysProcAttr { return nil }

// KeepFromChildren does nothing.
func KeepFromChildren() {}

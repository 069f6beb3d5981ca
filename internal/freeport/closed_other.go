//go:build !linux

package freeport

import "net"

// Closed is a port on which nobody listens. On this system, another process can take it.
type Closed struct{ port int }

// KeepClosed returns the port.
func KeepClosed(port int) (*Closed, error) { return &Closed{port}, nil }

// Listen listens on the port again.
func (c *Closed) Listen() (net.Listener, error) { return Listen(c.port) }

// Release has no effect.
func (c *Closed) Release() {}

package freeport

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// Closed is a port of 127.0.0.1 that is taken, although nobody listens on it: connections to it are
// refused, and no other process can listen on it.
type Closed struct {
	port   int
	socket int
	once   sync.Once
}

// KeepClosed takes a port that was open until now.
func KeepClosed(port int) (*Closed, error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	c := &Closed{port: port, socket: socket}
	// The last connections to the port may not have ended yet, and only a socket that shares the port
	// can be bound beside them. From then on, the port is not shared.
	err = c.share(true)
	if err == nil {
		err = os.NewSyscallError("bind", syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	}
	if err == nil {
		err = c.share(false)
	}
	if err != nil {
		c.Release()
		return nil, fmt.Errorf("keeping port %d closed: %w", port, err)
	}
	return c, nil
}

func (c *Closed) share(yes bool) error {
	value := 0
	if yes {
		value = 1
	}
	return os.NewSyscallError("setsockopt", syscall.SetsockoptInt(c.socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, value))
}

// Listen listens on the port again. There is no moment at which another process could take it.
func (c *Closed) Listen() (net.Listener, error) {
	if err := c.share(true); err != nil {
		return nil, err
	}
	defer c.Release()
	return Listen(c.port)
}

// Release gives up the port, unless it was given up before.
func (c *Closed) Release() {
	c.once.Do(func() { _ = syscall.Close(c.socket) })
}

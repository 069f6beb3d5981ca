package countstore

import (
	"net"
	"net/http"
	"sync"
)

// connections are the open connections, kept so that all of them can be cut at once.
type connections struct {
	mu     sync.Mutex
	isDown bool
	open   map[net.Conn]struct{}
}

func (c *connections) down() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isDown
}

// track is the ConnState callback of the HTTP server.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[net.Conn]struct{}{}
	}
	switch state {
	case http.StateNew:
		c.open[conn] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	case http.StateActive, http.StateIdle:
	}
}

// setDown takes the store down or up. A store that is down resets new connections.
// Connections that are already open are reset immediately.
func (c *connections) setDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isDown = down
	if down {
		for conn := range c.open {
			reset(conn)
		}
	}
}

// reset closes a connection with a TCP reset, as the kernel does for a process
// that was killed.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

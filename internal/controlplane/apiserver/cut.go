package apiserver

import (
	"net"
	"sync"
	"time"
)

// A cutListener can close itself together with all its connections.
type cutListener struct {
	net.Listener // nil if upstream opens the port

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ended bool
}

func (l *cutListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		select {} // never return: on an error, upstream panics if it is not stopping yet
	}
	defer l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if l.conns == nil {
		l.conns = map[net.Conn]struct{}{}
	}
	tracked := &cutConn{TCPConn: c.(*net.TCPConn), listener: l}
	// Upstream enables keep-alive for each *net.TCPConn, but does not recognize a cutConn as a
	// *net.TCPConn.
	_ = tracked.SetKeepAlive(true)
	_ = tracked.SetKeepAlivePeriod(keepAlive)
	l.conns[tracked] = struct{}{}
	return tracked, nil
}

func (l *cutListener) all() {
	if l.Listener == nil {
		return
	}
	l.mu.Lock()
	l.ended = true
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	_ = l.Close()
	for c := range conns {
		_ = c.Close()
	}
}

const keepAlive = 3 * time.Minute // the same as upstream (secure_serving.go)

// A cutConn is tracked by its listener until it is closed.
type cutConn struct {
	*net.TCPConn
	listener *cutListener
}

func (c *cutConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	return c.TCPConn.Close()
}

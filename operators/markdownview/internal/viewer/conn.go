package viewer

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// net/http sends a response through a buffer of a few kilobytes: it first writes the
// buffer, with the headers and the beginning of the body, and then the rest of the body.
// For a large page, the two writes cost an extra system call and wake the client twice.
// Therefore, while a body is written, the connection delays the first small write and sends
// it together with the next one.

const mostHeld = 4 << 10

// connection can delay a write. Only the goroutine that handles the request writes to it.
type connection struct {
	*net.TCPConn
	done func()

	holding bool
	held    []byte
	both    [2][]byte
	buffers net.Buffers
}

func (c *connection) Write(p []byte) (int, error) {
	switch {
	case c.holding && len(c.held) == 0 && len(p) <= mostHeld:
		c.held = append(c.held, p...)
		return len(p), nil
	case len(c.held) == 0:
		return c.TCPConn.Write(p)
	}
	c.both = [2][]byte{c.held, p}
	c.buffers = c.both[:]
	_, err := c.buffers.WriteTo(c.TCPConn)
	c.held, c.both = c.held[:0], [2][]byte{}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// release sends the delayed write, and stops delaying.
func (c *connection) release() error {
	c.holding = false
	if len(c.held) == 0 {
		return nil
	}
	_, err := c.TCPConn.Write(c.held)
	c.held = c.held[:0]
	return err
}

// Close closes the connection, which then no longer counts toward the limit.
func (c *connection) Close() error {
	err := c.TCPConn.Close()
	c.done()
	return err
}

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf returns the connection of a request, or nil if the connection has another type.
func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

// limited is a listener that limits the number of open connections. Further connections wait in the kernel.
type limited struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, most int) *limited {
	return &limited{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept waits until fewer connections than the limit are open, and then for a new connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	leave := sync.OnceFunc(func() { <-l.places })
	c, err := l.Listener.Accept()
	if err != nil {
		leave()
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		return &connection{TCPConn: tcp, done: leave}, nil
	}
	return &other{Conn: c, done: leave}, nil
}

// Close closes the listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// other is a connection that is not a TCP connection.
type other struct {
	net.Conn
	done func()
}

func (o *other) Close() error {
	err := o.Conn.Close()
	o.done()
	return err
}

// Package gate stands between the API server and the webhooks of a controller, so that a fault can
// make the webhooks unreachable. It forwards bytes, and knows nothing about TLS.
//
//	API server ──▶ Gate ──▶ controller
//	             Close, Open
package gate

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/koboshi-dev/koboshi/internal/freeport"
)

// Gate forwards connections from a port of 127.0.0.1 to an address. Its methods are safe for
// concurrent use.
type Gate struct {
	target string
	port   int
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener     // nil while the gate is closed
	closed   *freeport.Closed // nil unless the gate is closed
	open     map[net.Conn]bool
}

// New returns an open gate to an address.
func New(ctx context.Context, target string) (*Gate, error) {
	g := &Gate{target: target, open: map[net.Conn]bool{}}
	g.ctx, g.cancel = context.WithCancel(ctx)
	if err := g.Open(); err != nil {
		g.cancel()
		return nil, err
	}
	return g, nil
}

// Address returns the address at which the gate accepts connections, which never changes.
func (g *Gate) Address() string { return fmt.Sprintf("127.0.0.1:%d", g.port) }

// Open accepts connections, at the same port as before. It fails if another program has taken the
// port in the meantime, which is possible only on systems other than Linux. An open gate stays open.
func (g *Gate) Open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil || g.ctx.Err() != nil {
		return nil
	}
	l, err := g.listen()
	if err != nil {
		return fmt.Errorf("opening the port of the webhooks: %w", err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		g.port = tcp.Port
	}
	g.listener = l
	g.work.Go(func() { g.accept(l) })
	return nil
}

func (g *Gate) listen() (net.Listener, error) {
	closed := g.closed
	g.closed = nil
	if closed == nil {
		return freeport.Listen(g.port)
	}
	return closed.Listen()
}

// Close breaks all connections, and refuses new ones until Open is called.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		_ = g.listener.Close()
		g.listener = nil
		if closed, err := freeport.KeepClosed(g.port); err == nil {
			g.closed = closed
		}
	}
	for c := range g.open {
		_ = c.Close()
	}
}

// Stop closes the gate for good, and waits until nothing is forwarded. A nil gate is stopped.
func (g *Gate) Stop() {
	if g == nil {
		return
	}
	g.cancel()
	g.Close()
	if g.closed != nil {
		g.closed.Release()
	}
	g.work.Wait()
}

func (g *Gate) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return // the gate was closed
		}
		g.work.Go(func() { g.forward(l, client) })
	}
}

// forward copies the bytes of a connection in both directions until one side closes it.
func (g *Gate) forward(l net.Listener, client net.Conn) {
	defer client.Close()
	var dialer net.Dialer
	server, err := dialer.DialContext(g.ctx, "tcp", g.target)
	if err != nil {
		return // the controller is down
	}
	defer server.Close()
	if !g.enter(l, client) {
		return
	}
	defer g.leave(client)
	g.work.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
}

// enter adds a connection that was accepted by a listener, unless the gate was closed since then.
func (g *Gate) enter(l net.Listener, c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != l {
		return false
	}
	g.open[c] = true
	return true
}

func (g *Gate) leave(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, c)
}

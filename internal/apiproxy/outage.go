package apiproxy

import (
	"fmt"
	"net"

	"github.com/koboshi-dev/koboshi/internal/freeport"
)

// Disconnect makes the API server unreachable for the client: it breaks all connections, and refuses
// new ones until Reconnect is called. A watch that the client resumes shows what has happened in the
// meantime.
func (p *Proxy) Disconnect() {
	p.shut()
	p.keepClosed()
	p.changed.Fire()
}

// keepClosed prevents another process from taking the port of a server that was shut. If this fails,
// Reconnect reports whether the port was taken.
func (f *front) keepClosed() {
	f.serving.Lock()
	defer f.serving.Unlock()
	if f.closed != nil || f.ctx.Err() != nil {
		return
	}
	if closed, err := freeport.KeepClosed(f.port); err == nil {
		f.closed = closed
	}
}

// Reconnect makes the API server reachable again after Disconnect, at the same address.
func (p *Proxy) Reconnect() error {
	if p.ctx.Err() != nil {
		return nil // the proxy has been stopped
	}
	l, err := p.reopen()
	if err != nil {
		return fmt.Errorf("opening the proxy's port again: %w", err)
	}
	p.listen(l)
	p.changed.Fire()
	return nil
}

// reopen listens on the port of a server that was shut.
func (f *front) reopen() (net.Listener, error) {
	f.serving.Lock()
	defer f.serving.Unlock()
	closed := f.closed
	f.closed = nil
	if closed == nil {
		return freeport.Listen(f.port)
	}
	return closed.Listen()
}

package apiproxy

import (
	"fmt"
	"net"
	"strconv"

	"github.com/koboshi-dev/koboshi/internal/freeport"
)

// Disconnect makes the API server unreachable for the client: it breaks all connections, and refuses
// new ones until Reconnect is called. A watch that the client resumes shows what has happened in the
// meantime.
func (p *Proxy) Disconnect() {
	p.shut()
	p.changed.Fire()
}

// Reconnect makes the API server reachable again after Disconnect, at the same address. It fails if
// another program has taken the port in the meantime.
func (p *Proxy) Reconnect() error {
	if p.ctx.Err() != nil {
		return nil // the proxy has been stopped
	}
	_, text, err := net.SplitHostPort(p.address)
	if err != nil {
		return fmt.Errorf("reading the proxy's address: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("reading the proxy's port: %w", err)
	}
	l, err := freeport.Listen(port)
	if err != nil {
		return fmt.Errorf("opening the proxy's port again: %w", err)
	}
	p.listen(l)
	p.changed.Fire()
	return nil
}

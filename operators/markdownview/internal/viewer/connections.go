package viewer

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// connections counts open connections.
type connections struct {
	mu      sync.Mutex
	open    int
	changed chan struct{} // closed at the next change; nil if nothing waits for it
}

func (c *connections) observe(_ net.Conn, s http.ConnState) {
	if s != http.StateNew && s != http.StateClosed && s != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == http.StateNew {
		c.open++
	} else {
		c.open--
	}
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// drained waits until no connection has been open for a short while, but at most for the given
// time.
func (c *connections) drained(most time.Duration) {
	const moment = 200 * time.Millisecond
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed, none := c.changed, c.open == 0
		c.mu.Unlock()
		var still <-chan time.Time
		if none {
			still = time.After(moment)
		}
		select {
		case <-deadline.C:
			return
		case <-still:
			return
		case <-changed:
		}
	}
}

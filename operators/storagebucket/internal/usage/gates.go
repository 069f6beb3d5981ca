package usage

import (
	"context"
	"sync"
)

// gates limit the number of callers that are admitted at the same time, for each name
// separately. An unused name takes no memory. The zero value is ready to use.
type gates struct {
	mu    sync.Mutex
	named map[string]*gate
}

type gate struct {
	slots chan struct{}
	// users is the number of callers that are admitted or waiting.
	users int
}

// enter waits until the caller is admitted, and returns a function to call when done. As
// long as the name is in use, the limit of its first caller applies to all callers.
func (g *gates) enter(ctx context.Context, name string, limit int) (leave func(), err error) {
	at := g.join(name, limit)
	release, err := take(ctx, at.slots)
	if err != nil {
		g.part(name, at)
		return nil, err
	}
	return func() { release(); g.part(name, at) }, nil
}

func (g *gates) join(name string, limit int) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.named[name]
	if !ok {
		if g.named == nil {
			g.named = map[string]*gate{}
		}
		at = &gate{slots: make(chan struct{}, max(1, limit))}
		g.named[name] = at
	}
	at.users++
	return at
}

func (g *gates) part(name string, at *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at.users--
	if at.users == 0 {
		delete(g.named, name)
	}
}

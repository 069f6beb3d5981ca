package apiproxy

import (
	"context"
	"sync"
	"sync/atomic"
)

// gate delays requests before they are forwarded. It is open unless close was called
// more often than open.
type gate struct {
	shut    atomic.Int64 // calls of close without an open
	waiting atomic.Int64

	mu     sync.Mutex
	opened chan struct{} // closed when it opens
	onWait func()
}

func newGate(onWait func()) *gate { return &gate{opened: make(chan struct{}), onWait: onWait} }

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut.Add(1)
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut.Add(-1) == 0 {
		close(g.opened)
		g.opened = make(chan struct{})
	}
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	if g.shut.Load() == 0 {
		return nil
	}
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	for {
		g.mu.Lock()
		opened := g.opened
		shut := g.shut.Load() > 0
		g.mu.Unlock()
		if !shut {
			return nil
		}
		g.onWait()
		select {
		case <-opened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// signal wakes all goroutines that wait for a change. Without any it costs next to
// nothing.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that is closed at the next change.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

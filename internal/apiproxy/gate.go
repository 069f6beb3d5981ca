package apiproxy

import (
	"context"
	"sync/atomic"

	"github.com/koboshi-dev/koboshi/internal/broadcast"
)

// gate delays requests before they are forwarded. The gate is shut while close has been called more
// often than open.
type gate struct {
	shut    atomic.Int64 // calls of close minus calls of open
	waiting atomic.Int64
	opened  broadcast.Signal
	onWait  func()
}

func newGate(onWait func()) *gate { return &gate{onWait: onWait} }

func (g *gate) close() { g.shut.Add(1) }

func (g *gate) open() {
	if g.shut.Add(-1) == 0 {
		g.opened.Fire()
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
		opened := g.opened.Next()
		if g.shut.Load() == 0 {
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

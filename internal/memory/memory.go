// Package memory decides how much of it a plane holds: how far the heap grows
// between collections, and which pages of the program's file stay resident.
//
// It imports the standard library only, since package shim uses it before the
// rest of the program is initialised. What its figures cost and save is in
// docs/investigations.
package memory

import (
	"context"
	"os"
	"runtime/debug"
	"time"
)

const (
	// While a plane starts nearly all that it allocates stays.
	startPercent = 200
	// A collection delays the few requests that it meets. Less often than by
	// Go's default of 100 it is no more than with stock, whose two processes
	// collect one at a time. GOGC in the environment overrides both.
	servePercent = 150
)

const (
	// What the first requests of a client need once is needed no more then.
	firstLook = time.Second
	nextLook  = 10 * time.Second
)

// Starting is called before a plane starts.
func Starting() { collectAt(startPercent) }

// Settle is called when a plane has started. It gives back what only the start
// needed, and goes on giving back pages until ctx ends.
func Settle(ctx context.Context) {
	collectAt(servePercent)
	debug.FreeOSMemory()
	GiveBackPages()
	for wait := firstLook; ; wait = nextLook {
		select {
		case <-time.After(wait):
			GiveBackPages()
		case <-ctx.Done():
			return
		}
	}
}

func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

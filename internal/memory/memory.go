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
	"runtime/metrics"
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
	look = time.Second
	// A plane that nobody uses allocates less than this between two looks.
	quiet = 4 << 20 // bytes
	// What was allocated since memory was last given back, to be worth a collection.
	worth = 32 << 20 // bytes
)

// Starting is called before a plane starts.
func Starting() { collectAt(startPercent) }

// Settle is called when a plane has started. It gives back what only the start
// needed, and until ctx ends what a time of much use has left behind.
func Settle(ctx context.Context) {
	collectAt(servePercent)
	giveBack()
	before, given := allocated(), uint64(0) // the first quiet look gives back once more
	for {
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return
		}
		now := allocated()
		if now-before < quiet && now-given > worth {
			giveBack()
			given = now
		}
		before = now
	}
}

func giveBack() {
	debug.FreeOSMemory()
	GiveBackPages()
}

// allocated is how many bytes the heap has ever been asked for.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

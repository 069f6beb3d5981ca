// Package memory limits the memory of a plane. It controls how far the heap grows between
// collections, and which pages of the program's file stay resident.
//
// It imports only the standard library, because package shim uses it before the rest of
// the program is initialised. docs/investigations records what its settings cost and
// save.
package memory

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// While a plane starts, nearly everything that it allocates stays in use, so frequent
	// collections would free little.
	startPercent = 200
	// A collection delays the requests that run at the same time. Go's default of 100 would
	// cause more collections. With servePercent, requests are delayed no longer than with
	// stock envtest. The environment variable GOGC overrides startPercent and servePercent.
	servePercent = 150
)

const (
	look = time.Second
	// An idle plane allocates less than this between two checks.
	quiet = 4 << 20 // bytes
	// A collection is worthwhile once this much has been allocated since the last one.
	worth = 32 << 20 // bytes
)

// Starting must be called before a plane starts.
func Starting() { collectAt(startPercent) }

// Settle must be called when a plane has started. Settle releases memory that was needed only
// during the start. Until ctx ends, it also releases the memory left over from each period of heavy
// use.
func Settle(ctx context.Context) {
	collectAt(servePercent)
	giveBack()
	before, given := allocated(), uint64(0) // the first idle check releases memory once more
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

// allocated returns the number of bytes ever allocated on the heap.
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

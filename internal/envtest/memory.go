package envtest

import (
	"os"
	"runtime/debug"

	"github.com/koboshi-dev/koboshi/internal/envtest/shim"
)

const (
	// While the server starts nearly all that is allocated stays.
	startPercent = 200
	// Ten packages are tested at once on a machine with little memory.
	servePercent = 50
)

func starting() { collect(startPercent) }

// settle gives back what only the start needed.
func settle() {
	collect(servePercent)
	debug.FreeOSMemory()
	shim.GiveBackPages()
}

// collect sets how much the heap grows between collections, unless the user has.
func collect(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

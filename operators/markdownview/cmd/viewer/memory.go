package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// roomForGarbage is the amount of garbage that triggers a collection. Requests leave
// little garbage, and the site itself lives long. Go's default, a collection in proportion
// to the live memory, would collect too often with a small site and use too much memory
// with a large one.
const roomForGarbage = 24 << 20

// settleMemory returns the memory used for building a site to the system, and sets when
// garbage is collected from now on. GOGC, if set, takes precedence.
func settleMemory() {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") != "" {
		return
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(int(min(max(roomForGarbage*100/(m.HeapAlloc+1), 20), 800)))
}

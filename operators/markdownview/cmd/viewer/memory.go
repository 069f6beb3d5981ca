package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// roomForGarbage is the amount of garbage that triggers a collection. Requests leave
// little behind, and the site itself lives long: collecting in proportion to the site,
// as Go does by default, would be too often for a small site and use too much memory
// for a large one.
const roomForGarbage = 24 << 20

// settleMemory returns the memory that building a site needed, and sets when to collect
// from now on. GOGC, if set, takes precedence.
func settleMemory() {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") != "" {
		return
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(int(min(max(roomForGarbage*100/(m.HeapAlloc+1), 20), 800)))
}

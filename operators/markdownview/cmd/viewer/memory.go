package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// roomForGarbage is how much garbage may gather before it is collected. What
// requests leave behind is little, and the site itself lives long: collecting in
// proportion to the site, as Go does, would be too often for a small site and use
// too much memory for a large one.
const roomForGarbage = 24 << 20

// settleMemory gives back what building a site needed, and sets when to collect
// from now on. GOGC decides when it is set.
func settleMemory() {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") != "" {
		return
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(int(min(max(roomForGarbage*100/(m.HeapAlloc+1), 20), 800)))
}

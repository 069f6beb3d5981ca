package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// roomForGarbage is the amount of garbage that triggers a collection. Requests leave little
// garbage, and the site itself stays in memory. By default, Go collects garbage whenever
// the memory in use has doubled: with a small site this is too often, and a large site
// would use too much memory.
const roomForGarbage = 24 << 20

// settleMemory returns unused memory to the system after a site has been built, and sets how much
// garbage triggers a collection from now on. GOGC, if set, takes precedence.
func settleMemory() {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") != "" {
		return
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(int(min(max(roomForGarbage*100/(m.HeapAlloc+1), 20), 800)))
}

package cli

import (
	"os"
	"runtime/debug"
)

// gcPercent makes the collector run more often than Go's default of 100, so
// that the process holds less than stock etcd and kube-apiserver together; see
// docs/investigations/2026-11-20-start.md for what it costs. GOGC overrides it.
const gcPercent = 30

func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

package cli

import (
	"os"
	"runtime/debug"
)

// gcPercent lets the heap grow less between collections than Go's default of
// 100, so that the process holds less than stock etcd and kube-apiserver do
// together, also while it starts. What it costs is measured in
// docs/investigations/2026-11-20-start.md. GOGC overrides it.
const gcPercent = 50

func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// Command manager runs the controllers of ObjectStores and StorageBuckets.
package main

import (
	"flag"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/loglevel"
)

// gcPercent is lower than Go's default of 100, to save memory at the cost of CPU time: most
// of the heap is the cache, and the heap grows by this percentage before it is collected.
// GOGC takes precedence when it is set.
const gcPercent = 30

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	var o options
	o.bind(flag.CommandLine)
	var zapOptions zap.Options
	zapOptions.BindFlags(flag.CommandLine)
	flag.Parse()
	zapOptions.Level = loglevel.WithoutBodies(zapOptions.Level)

	logger := zap.New(zap.UseFlagOptions(&zapOptions))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		logger.Error(err, "manager failed")
		os.Exit(1)
	}
}

// Command manager runs the controllers of ObjectStores and StorageBuckets.
package main

import (
	"flag"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/loglevel"
)

func main() {
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

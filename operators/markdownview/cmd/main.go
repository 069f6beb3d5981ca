// Command manager runs the MarkdownView operator.
package main

import (
	"flag"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	var o options
	o.bind(flag.CommandLine)
	var zapOptions zap.Options
	zapOptions.BindFlags(flag.CommandLine)
	flag.Parse()

	logger := zap.New(zap.UseFlagOptions(&zapOptions))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		logger.Error(err, "manager failed")
		os.Exit(1)
	}
}

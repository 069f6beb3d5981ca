// Command koboshi runs real Kubernetes in one process, to write, run and prove
// custom controllers. Called by the name kubectl it is kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/koboshi-dev/koboshi/internal/cli"
	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
)

func main() {
	if filepath.Base(os.Args[0]) == "kubectl" {
		os.Exit(cli.Kubectl(os.Args[1:]))
	}
	stderr, err := clog.KeepStderr()
	if err != nil {
		stderr = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default handling returns, so a second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, os.Args[1:], cli.Stdio{In: os.Stdin, Out: os.Stdout, Err: stderr}))
}

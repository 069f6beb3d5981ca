// Package envtest implements the programs etcd and kube-apiserver, with upstream's
// flags, as controller-runtime's envtest starts them.
//
// On Linux one process, the host, runs both servers, and the processes that envtest
// sees are shims (see package shim). On other systems, and where a host cannot run a
// server faithfully, each server runs in the process that envtest started.
package envtest

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage/command"
	"github.com/koboshi-dev/koboshi/internal/envtest/shim"
	"github.com/koboshi-dev/koboshi/internal/memory"
)

const (
	exitOK    = 0
	exitError = 1
)

// endTimeout limits the wait for the end of a server whose test suite has ended.
const endTimeout = 2 * time.Second

// Run runs the named program in this process.
func Run(name string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ended := make(chan struct{})
	go func() {
		<-shim.Orphaned()
		stop()
		select {
		case <-ended:
		case <-time.After(endTimeout):
		}
		shim.RemoveLeftover(name)
		os.Exit(exitError)
	}()
	code := serve(ctx, name, args)
	close(ended)
	if shim.IsOrphaned() {
		select {} // until the goroutine above has removed the folder and exits
	}
	return code
}

func serve(ctx context.Context, name string, args []string) int {
	memory.Starting()
	if name == shim.APIServer {
		return runAPIServer(ctx, args, false, nil)
	}
	etcd, code := command.Parse(args, os.Stderr)
	if etcd == nil {
		return code
	}
	ended := make(chan int, 1)
	go func() { ended <- etcd.Run(ctx) }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
		if shim.IsOrphaned() {
			return <-ended // its folder is about to be removed
		}
		return exitOK // all acknowledged writes are in the log
	}
}

// Tell prints the answer to --help or --version.
func Tell(name string, args []string) int {
	if name == shim.APIServer {
		return apiserver.Tell(args)
	}
	command.Tell(args)
	return exitOK
}

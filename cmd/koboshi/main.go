// Command koboshi runs real Kubernetes in one process, to write, run and prove
// custom controllers. Called by the name kubectl, etcd or kube-apiserver it is
// that program, as controller-runtime's envtest uses it.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/koboshi-dev/koboshi/internal/cli"
	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/kubelet"
	"github.com/koboshi-dev/koboshi/internal/envtest"
	"github.com/koboshi-dev/koboshi/internal/envtest/shim"
)

func main() {
	if name := shim.Called(); name != "" {
		os.Exit(server(name, os.Args[1:]))
	}
	if kubelet.Called() {
		os.Exit(kubelet.Main())
	}
	// kubectl has its own ways with signals.
	if filepath.Base(os.Args[0]) == "kubectl" {
		os.Exit(cli.Kubectl(os.Args[1:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "kubectl" {
		os.Exit(cli.Kubectl(os.Args[2:]))
	}
	stderr, err := clog.KeepStderr()
	if err != nil {
		stderr = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals()...)
	// After the first signal the default handling returns, so a second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, os.Args[1:], cli.Stdio{In: os.Stdin, Out: os.Stdout, Err: stderr}))
}

// server is what package shim has left to do: a host, an answer, or a server in
// a process of its own.
func server(name string, args []string) int {
	switch {
	case os.Getenv(shim.HostVariable) != "":
		return envtest.Host()
	case shim.AsksSomething(args):
		return envtest.Tell(name, args)
	}
	return envtest.Run(name, args)
}

// signals lists what ends the program in order. A closed terminal does too,
// unless nohup said otherwise.
func signals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

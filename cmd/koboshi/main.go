// Command koboshi runs real Kubernetes in one process, to run and test custom
// controllers. When started under the name kubectl, etcd or kube-apiserver, it behaves
// like that program, as controller-runtime's envtest expects.
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/koboshi-dev/koboshi/internal/cli"
	_ "github.com/koboshi-dev/koboshi/internal/cli/static" // answers --help before Kubernetes is initialised
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
	// kubectl handles signals itself.
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
	os.Exit(cli.Run(cli.UntilSignal(context.Background()), os.Args[1:], cli.Stdio{In: os.Stdin, Out: os.Stdout, Err: stderr}))
}

// server handles the cases that package shim does not: it runs a host, answers --help or
// --version, or runs a server in this process.
func server(name string, args []string) int {
	switch {
	case os.Getenv(shim.HostVariable) != "":
		return envtest.Host()
	case shim.AsksSomething(args):
		return envtest.Tell(name, args)
	}
	return envtest.Run(name, args)
}

// Package record runs a command behind a recording proxy, so that it can be inspected.
//
//	command ──KUBECONFIG──▶ apiproxy ──▶ the API server of the user
//	   │ output                 │
//	   └────────▶ trace.Log ◀───┘
package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Options describes the command and its recording.
type Options struct {
	// Upstream holds the address of the API server and the identity of the command.
	Upstream *rest.Config
	// Command is the program with its arguments, and Env its environment. KUBECONFIG is
	// replaced.
	Command []string
	Env     []string
	// Log records the requests, the events and the output. Output, if it is not nil, also receives
	// the output of the command.
	Log    *trace.Log
	Output io.Writer
}

// instance is the name of the process in the trace.
const instance = "controller-1"

// grace is the time that the command has to exit after a signal, as long as a kubelet gives
// its containers by default.
const grace = 30 * time.Second

// Run runs the command until it exits, and returns its exit code. When the context ends, it asks
// the command to exit.
func Run(ctx context.Context, o Options) (code int, err error) {
	// The proxy must outlive the context, because the command may write while it exits.
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	proxy, err := apiproxy.Start(lasting, apiproxy.Config{Upstream: o.Upstream, Instance: instance, Log: o.Log})
	if err != nil {
		return 0, err
	}
	defer proxy.Stop()
	dir, err := os.MkdirTemp("", "koboshi-inspect-")
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", o.Command[0], err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	kubeconfig, err := writeKubeconfig(dir, proxy)
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", o.Command[0], err)
	}
	lines := trace.NewLines(o.Log, instance, "")
	var output io.Writer = lines
	if o.Output != nil {
		output = io.MultiWriter(lines, o.Output)
	}
	p, err := process.Start(lasting, process.Spec{
		Command: o.Command, Env: append(o.Env[:len(o.Env):len(o.Env)], "KUBECONFIG="+kubeconfig), Output: output,
	})
	if err != nil {
		return 0, err
	}
	note(o.Log, trace.Process{What: "started", PID: p.PID()})
	select {
	case <-p.Exited():
	case <-ctx.Done():
		p.Stop(grace)
	}
	_ = lines.Close()
	code, _ = p.Exit()
	note(o.Log, trace.Process{What: "exited", PID: p.PID(), ExitCode: code})
	return code, nil
}

func note(log *trace.Log, p trace.Process) { log.Record(trace.Entry{Instance: instance, Process: &p}) }

func writeKubeconfig(dir string, proxy *apiproxy.Proxy) (string, error) {
	data, err := proxy.Kubeconfig()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "kubeconfig")
	return file, os.WriteFile(file, data, 0o600)
}

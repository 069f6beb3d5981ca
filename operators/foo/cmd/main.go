// Command manager runs the controllers of foo.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	// This package supports kubeconfigs that log in through OIDC.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	// This package measures requests, queues and leader election.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"

	"k8s.io/klog/v2"

	"github.com/koboshi-dev/koboshi/operators/foo/internal/controller"
	"github.com/koboshi-dev/koboshi/operators/foo/internal/operator"
	// +kubebuilder:scaffold:imports
)

func main() {
	var o options
	o.bind(flag.CommandLine)
	klog.InitFlags(flag.CommandLine)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, &o); err != nil {
		klog.ErrorS(err, "Failed to run the manager")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	klog.Flush()
}

// run runs the manager until the context ends, or until it loses its Lease.
func run(ctx context.Context, o *options) error {
	config, err := o.config()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	op, err := operator.New(config)
	if err != nil {
		return err
	}

	if err := controller.AddFoo(op); err != nil {
		return fmt.Errorf("adding the controller sample-foo: %w", err)
	}
	// +kubebuilder:scaffold:builder

	if err := o.serve(ctx, op); err != nil {
		return err
	}
	klog.InfoS("Starting the manager")
	if err := op.Start(ctx); err != nil {
		return err
	}
	if !o.leaderElect {
		return work(ctx, op.Run)
	}
	return o.lead(ctx, op)
}

// Command bugs runs one controller of the track record: a small controller with one bug or,
// with --repaired, its twin without the bug.
//
//	bugs NAME [--repaired | --old] [--leader-elect]
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// options are the arguments of the program.
type options struct {
	name          string
	repaired      bool
	old           bool
	leaderElect   bool
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
}

func (o *options) bind(fs *flag.FlagSet) {
	fs.BoolVar(&o.repaired, "repaired", false, "run the repaired twin, which does not have the bug")
	fs.BoolVar(&o.old, "old", false, "run the old version of a controller whose bug is in its upgrade")
	fs.BoolVar(&o.leaderElect, "leader-elect", false, "do nothing until this instance holds the lease")
	fs.DurationVar(&o.leaseDuration, "lease-duration", 3*time.Second, "time after which a lease that is not renewed expires")
	fs.DurationVar(&o.renewDeadline, "renew-deadline", 2*time.Second, "time for which the leader tries to renew the lease before it gives up")
	fs.DurationVar(&o.retryPeriod, "retry-period", 250*time.Millisecond, "time between two attempts to acquire or renew the lease")
}

func main() {
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bugs:", err)
		os.Exit(1)
	}
}

// run runs the program, except for signals, logging and the exit code.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return fmt.Errorf("no controller is named; choose from: %s", strings.Join(names(), " "))
	}
	o := options{name: args[0]}
	if command, ok := commands[o.name]; ok {
		return command(ctx, args[1:])
	}
	fs := flag.NewFlagSet("bugs "+o.name, flag.ContinueOnError)
	o.bind(fs)
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	controller, ok := catalogue[o.name]
	if !ok {
		return fmt.Errorf("unknown controller %q; choose from: %s", o.name, strings.Join(names(), " "))
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig named by KUBECONFIG: %w", err)
	}
	cfg.QPS = -1 // the checker waits for every request, so a rate limit would only cost time
	return controller(ctx, cfg, o)
}

// newManager returns a manager that communicates only with the API server. It sends no
// additional requests, such as discovery, and serves no metrics.
func newManager(cfg *rest.Config, o options) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:           object.Scheme,
		MapperProvider:   object.Mapper,
		Metrics:          server.Options{BindAddress: "0"},
		LeaderElection:   o.leaderElect,
		LeaderElectionID: "bugs-" + o.name,
		LeaseDuration:    &o.leaseDuration,
		RenewDeadline:    &o.renewDeadline,
		RetryPeriod:      &o.retryPeriod,
		Controller:       config.Controller{SkipNameValidation: new(true)},

		LeaderElectionNamespace: "default",
	})
	if err != nil {
		return nil, fmt.Errorf("creating a manager for %s: %w", o.name, err)
	}
	return mgr, nil
}

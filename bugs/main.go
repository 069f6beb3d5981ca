// Command bugs runs one controller of the track record: a small controller with
// one bug or, with --repaired, its twin without it.
//
//	bugs NAME [--repaired] [--leader-elect]
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
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

// setup adds a controller, or its repaired twin, to a manager.
type setup func(mgr ctrl.Manager, repaired bool) error

// standalone runs a controller that is written without controller-runtime.
type standalone func(ctx context.Context, cfg *rest.Config, repaired bool) error

// flags are what a person can say besides the name.
type flags struct {
	repaired      bool
	leaderElect   bool
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
}

func (f *flags) bind(fs *flag.FlagSet) {
	fs.BoolVar(&f.repaired, "repaired", false, "run the twin without the bug")
	fs.BoolVar(&f.leaderElect, "leader-elect", false, "do nothing before this instance holds the lease")
	fs.DurationVar(&f.leaseDuration, "lease-duration", 3*time.Second, "how long a lease counts that is not renewed")
	fs.DurationVar(&f.renewDeadline, "renew-deadline", 2*time.Second, "how long the leader tries to renew before it gives up")
	fs.DurationVar(&f.retryPeriod, "retry-period", 250*time.Millisecond, "time between two tries to get or renew the lease")
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

// run is the program without what belongs to the process.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return fmt.Errorf("say which controller to run: %s", strings.Join(names(), " "))
	}
	name := args[0]
	if command, ok := commandsB[name]; ok {
		return command(ctx, args[1:])
	}
	var f flags
	fs := flag.NewFlagSet("bugs "+name, flag.ContinueOnError)
	f.bind(fs)
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	add, managed := table[name]
	alone, plain := standaloneTable[name]
	if !managed && !plain {
		return fmt.Errorf("no controller %q; choose one of: %s", name, strings.Join(names(), " "))
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig that KUBECONFIG names: %w", err)
	}
	cfg.QPS = -1 // the checker waits for every request; a limit would only cost time
	if plain {
		return alone(ctx, cfg, f.repaired)
	}
	mgr, err := newManager(cfg, name, f)
	if err != nil {
		return err
	}
	if err := add(mgr, f.repaired); err != nil {
		return fmt.Errorf("setting up %s: %w", name, err)
	}
	return mgr.Start(ctx)
}

// newManager makes a manager that talks to nobody but the API server, and asks it
// for nothing that the controller did not ask for: no discovery, no metrics.
func newManager(cfg *rest.Config, name string, f flags) (ctrl.Manager, error) {
	o := ctrl.Options{
		Scheme:           object.Scheme,
		MapperProvider:   object.Mapper,
		Metrics:          server.Options{BindAddress: "0"},
		LeaderElection:   f.leaderElect,
		LeaderElectionID: "bugs-" + name,
		LeaseDuration:    &f.leaseDuration,
		RenewDeadline:    &f.renewDeadline,
		RetryPeriod:      &f.retryPeriod,
		Controller:       config.Controller{SkipNameValidation: new(true)},

		LeaderElectionNamespace: "default",
	}
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("making a manager for %s: %w", name, err)
	}
	return mgr, nil
}

// table and standaloneTable hold all controllers, by the id of the class in small
// letters.
var (
	table           = merge(controllersA, controllersB)
	standaloneTable = merge(standaloneA, standaloneB)
)

func merge[V any](parts ...map[string]V) map[string]V {
	all := map[string]V{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

func names() []string {
	return slices.Sorted(maps.Keys(merge(asNames(table), asNames(standaloneTable))))
}

func asNames[V any](m map[string]V) map[string]bool {
	set := map[string]bool{}
	for name := range m {
		set[name] = true
	}
	return set
}

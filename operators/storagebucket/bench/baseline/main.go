// Command baseline is the operator with which the bench compares the StorageBucket operator. It has
// the usual design for checking external resources at regular intervals: a ticker sends one empty
// event, and the event is mapped to a request for every StorageBucket. For each StorageBucket, the
// baseline sends a request to the store and writes the outcome to the status.
//
// It is a manager with kubebuilder's layout, built with the same libraries, types and Go settings
// as the operator under test. In its favor, it does three things that the usual design leaves out:
// it has one S3 client for all buckets of a store; it has as many workers as the operator; and a
// predicate keeps its own status writes from triggering it again. The S3 client is the SDK's, with
// the SDK's defaults for connections and retries.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

type options struct {
	interval       time.Duration
	maxConcurrent  int
	metrics, pprof string
	metricsSecure  bool
}

func main() {
	var o options
	flag.DurationVar(&o.interval, "interval", time.Minute, "time between two broadcasts")
	flag.IntVar(&o.maxConcurrent, "max-concurrent-reconciles", 1, "number of workers; controller-runtime's default is 1")
	flag.StringVar(&o.metrics, "metrics-bind-address", "0", "address of the metrics; 0 turns them off")
	flag.BoolVar(&o.metricsSecure, "metrics-secure", true, "serve metrics over HTTPS, to clients the API server authorizes")
	flag.StringVar(&o.pprof, "pprof-bind-address", "0", "address of Go's profiles; 0 turns them off")
	flag.Parse()
	logger := zap.New()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		logger.Error(err, "manager failed")
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("registering types: %w", err)
		}
	}
	metrics := metricsserver.Options{BindAddress: o.metrics, SecureServing: o.metricsSecure}
	if o.metricsSecure {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:           scheme,
		Metrics:          metrics,
		PprofBindAddress: o.pprof,
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	reconciler := &reconciler{Client: mgr.GetClient(), timeout: min(5*time.Second, o.interval/5*4)}
	if err := reconciler.setup(mgr, o); err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

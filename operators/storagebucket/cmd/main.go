// Command manager runs the controller of StorageBuckets.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/controller"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/loglevel"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/probe"
)

// options are the command line.
type options struct {
	metricsAddr     string
	metricsSecure   bool
	healthProbeAddr string
	leaderElect     bool
	namespaces      string
	maxConcurrent   int
}

func main() {
	var o options
	flag.StringVar(&o.metricsAddr, "metrics-bind-address", "0",
		"The address of the metrics endpoint, for example :8443. 0 turns it off.")
	flag.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"Serve metrics over HTTPS, to clients the API server authenticates and authorizes. "+
			"Without it only a loopback address is accepted.")
	flag.StringVar(&o.healthProbeAddr, "health-probe-bind-address", "0",
		"The address of the /healthz and /readyz endpoints, for example :8081. 0 turns them off.")
	flag.BoolVar(&o.leaderElect, "leader-elect", false,
		"Elect a leader, so that of several managers one is active.")
	flag.StringVar(&o.namespaces, "namespaces", "",
		"The namespaces to watch, separated by commas. Empty means all.")
	flag.IntVar(&o.maxConcurrent, "max-concurrent-probes", 10,
		"How many buckets are probed at the same time.")
	var zapOptions zap.Options
	zapOptions.BindFlags(flag.CommandLine)
	flag.Parse()
	zapOptions.Level = loglevel.WithoutBodies(zapOptions.Level)

	logger := zap.New(zap.UseFlagOptions(&zapOptions))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		logger.Error(err, "manager failed")
		os.Exit(1)
	}
}

// run builds the manager and runs it until the context ends.
func run(ctx context.Context, o options) error {
	metrics, err := metricsOptions(o)
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 newScheme(),
		Cache:                  controller.CacheOptions(splitNamespaces(o.namespaces)...),
		Metrics:                metrics,
		HealthProbeBindAddress: o.healthProbeAddr,
		LeaderElection:         o.leaderElect,
		LeaderElectionID:       "storagebucket.storage.koboshi.dev",
		// The process ends when the manager does, so the next leader need not
		// wait for the lease to expire.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	reconciler := &controller.Reconciler{
		Client:        mgr.GetClient(),
		Secrets:       mgr.GetAPIReader(),
		Prober:        probe.NewS3(),
		Events:        mgr.GetEventRecorder("storagebucket"),
		Clock:         clock.RealClock{},
		MaxConcurrent: o.maxConcurrent,
	}
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	if err := errors.Join(
		mgr.AddHealthzCheck("healthz", healthz.Ping),
		mgr.AddReadyzCheck("readyz", healthz.Ping),
	); err != nil {
		return fmt.Errorf("adding health checks: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(storagev1alpha1.AddToScheme(scheme))
	return scheme
}

// metricsOptions refuses to serve metrics to anybody who asks: either the API
// server vouches for the client, or the client is on this machine.
func metricsOptions(o options) (metricsserver.Options, error) {
	m := metricsserver.Options{BindAddress: o.metricsAddr}
	switch {
	case o.metricsAddr == "0" || o.metricsAddr == "":
		m.BindAddress = "0"
	case o.metricsSecure:
		m.SecureServing = true
		m.FilterProvider = filters.WithAuthenticationAndAuthorization
		// No HTTP/2, because of GHSA-qppj-fm5r-hxr3 and GHSA-4374-p667-p6c8.
		m.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	case !isLoopback(o.metricsAddr):
		return m, fmt.Errorf("--metrics-secure=false with --metrics-bind-address=%s: "+
			"use a loopback address such as 127.0.0.1:8080", o.metricsAddr)
	}
	return m, nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func splitNamespaces(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

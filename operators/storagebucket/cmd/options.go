package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/certificates"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/metrics"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/stores"
)

// options are the command-line flags.
type options struct {
	metricsAddr     string
	metricsSecure   bool
	metricsCertDir  string
	healthProbeAddr string
	pprofAddr       string
	leaderElect     bool
	leaderNamespace string
	namespaces      string
	maxConcurrent   int

	storeRate             float64
	storeConcurrency      int
	allowedEndpoints      string
	environmentNamespaces string
	heartbeat             time.Duration
	clusterID             string

	notifyAddr      string
	notifyTokenFile string
	notifyCertDir   string
	webhookPort     int
	webhookCertDir  string
	// webhookCertificate is used instead of the certificate in webhookCertDir.
	webhookCertificate certificates.Options

	await      string
	awaitLimit time.Duration
}

func (o *options) bind(f *flag.FlagSet) {
	f.StringVar(&o.metricsAddr, "metrics-bind-address", "0",
		"The address of the metrics endpoint, for example :8443. 0 turns it off.")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"Serve metrics over HTTPS, only to clients that the API server authenticates and authorizes. "+
			"If false, only a loopback address is accepted.")
	f.StringVar(&o.metricsCertDir, "metrics-cert-dir", "",
		"The directory with tls.crt and tls.key for the metrics endpoint, so that scrapers can verify it. "+
			"If empty, the manager creates a self-signed certificate at each start.")
	f.StringVar(&o.healthProbeAddr, "health-probe-bind-address", "0",
		"The address of the /healthz and /readyz endpoints, for example :8081. 0 turns them off.")
	f.StringVar(&o.pprofAddr, "pprof-bind-address", "0",
		"The loopback address of Go's profiles, for example 127.0.0.1:6060. 0 turns them off.")
	f.BoolVar(&o.leaderElect, "leader-elect", false,
		"Elect a leader, so that only one of several managers is active at a time.")
	f.StringVar(&o.leaderNamespace, "leader-election-namespace", "",
		"The namespace of the lease for leader election. Empty means the namespace of the manager's Pod, if the manager runs in a cluster.")
	f.StringVar(&o.namespaces, "namespaces", "",
		"The namespaces to watch, separated by commas. Empty means all.")
	f.IntVar(&o.maxConcurrent, "max-concurrent-reconciles", 64,
		"The maximum number of buckets that are reconciled at the same time.")

	f.Float64Var(&o.storeRate, "store-requests-per-second", 300,
		"The maximum number of requests per second to one store. An ObjectStore can set a lower limit for its store.")
	f.IntVar(&o.storeConcurrency, "store-concurrency", 16,
		"The maximum number of concurrent requests to one store. An ObjectStore can set a lower limit for its store.")
	f.StringVar(&o.allowedEndpoints, "allowed-endpoints", "",
		"The only endpoints that stores may have, separated by commas: host names, *.suffix, IP addresses, "+
			"CIDRs, or * for all except loopback, link-local and metadata addresses, which must be "+
			"listed explicitly. Empty means *.")
	f.StringVar(&o.environmentNamespaces, "environment-credentials-namespaces", "",
		"The namespaces whose ObjectStores may use the manager's own identity, separated by commas; * means all.")
	f.DurationVar(&o.heartbeat, "status-heartbeat", time.Hour,
		"The minimum time between two writes of a status that only update the time of the last probe. 0 turns such writes off.")
	f.StringVar(&o.clusterID, "cluster-id", "",
		"The ID of this cluster in the tags of its buckets, which distinguishes them from the buckets of other clusters. Empty means the UID of the namespace kube-system.")

	f.StringVar(&o.notifyAddr, "notify-bind-address", "0",
		"The address of the endpoint for notifications from stores, for example :9443. 0 turns it off.")
	f.StringVar(&o.notifyTokenFile, "notify-token-file", "",
		"A file with a token that notifications may use instead of a Kubernetes token.")
	f.StringVar(&o.notifyCertDir, "notify-cert-dir", "",
		"The directory that holds tls.crt and tls.key for notifications. If empty, only a loopback address is accepted.")
	f.IntVar(&o.webhookPort, "webhook-port", 0,
		"The port of the conversion webhook, for example 9443. 0 turns it off.")
	f.StringVar(&o.webhookCertDir, "webhook-cert-dir", "",
		"The directory with tls.crt and tls.key for the conversion webhook.")
	o.webhookCertificate.Bind(f)

	f.StringVar(&o.await, "await", "",
		"Run no controllers, but wait until another manager has reconciled this StorageBucket, given as NAMESPACE/NAME.")
	f.DurationVar(&o.awaitLimit, "await-limit", 2*time.Minute, "The maximum time that --await waits.")
}

// storeOptions checks the flags that concern stores.
func (o options) storeOptions() (stores.Options, error) {
	guard, err := egress.New(split(o.allowedEndpoints))
	if err != nil {
		return stores.Options{}, fmt.Errorf("parsing --allowed-endpoints: %w", err)
	}
	if o.storeRate <= 0 || o.storeConcurrency <= 0 || o.maxConcurrent <= 0 {
		return stores.Options{}, fmt.Errorf("--store-requests-per-second, --store-concurrency and " +
			"--max-concurrent-reconciles must be more than 0")
	}
	return stores.Options{
		Guard:                 guard,
		EnvironmentNamespaces: split(o.environmentNamespaces),
		RequestsPerSecond:     o.storeRate,
		Concurrency:           o.storeConcurrency,
		Requested:             metrics.StoreRequested,
		Waited:                metrics.LimiterWaited,
	}, nil
}

// pprofAddress checks that the profiles of the process are served only to clients on
// this machine.
func (o options) pprofAddress() (string, error) {
	if off(o.pprofAddr) {
		return "", nil
	}
	if !isLoopback(o.pprofAddr) {
		return "", fmt.Errorf("--pprof-bind-address=%s is not a loopback address: use an address such as 127.0.0.1:6060", o.pprofAddr)
	}
	return o.pprofAddr, nil
}

// metricsOptions refuses to serve metrics to unknown clients: either the API server
// authenticates the client, or the client must be on this machine.
func (o options) metricsOptions() (metricsserver.Options, error) {
	m := metricsserver.Options{BindAddress: o.metricsAddr}
	switch {
	case off(o.metricsAddr):
		m.BindAddress = "0"
	case o.metricsSecure:
		m.SecureServing, m.CertDir = true, o.metricsCertDir
		m.FilterProvider = filters.WithAuthenticationAndAuthorization
		m.TLSOpts = []func(*tls.Config){withoutHTTP2}
	case !isLoopback(o.metricsAddr):
		return m, fmt.Errorf("--metrics-secure=false needs a loopback address, but --metrics-bind-address is %s: "+
			"use an address such as 127.0.0.1:8080", o.metricsAddr)
	}
	return m, nil
}

// withoutHTTP2 turns off HTTP/2 because of GHSA-qppj-fm5r-hxr3 and GHSA-4374-p667-p6c8.
func withoutHTTP2(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }

func off(address string) bool { return address == "0" || address == "" }

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// Package metrics holds the operator's own metrics. All metrics are in controller-runtime's
// registry, so the manager's metrics endpoint serves them.
//
// Single probes are counted here and not in the status of the objects, because a probe
// with the same result as the previous one writes nothing to the API server.
package metrics

import (
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	build "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// InlineStore is the value of the label store for a bucket with an inline
// store.
const InlineStore = "inline"

// StoreName returns the value of the label store for an ObjectStore.
func StoreName(namespace, name string) string { return namespace + "/" + name }

var factory = promauto.With(metrics.Registry)

// The metrics. StoreName gives the value of the label store; ForgetStore drops the
// series of a store that is gone.
var (
	// ProbeDuration is the duration of bucket probes, by store.
	ProbeDuration = factory.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "storagebucket_probe_duration_seconds",
		Help:    "Time that a store took to answer the probe of a bucket.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"store"})

	// Probes counts probes of buckets, by store and reason.
	Probes = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "storagebucket_probes_total",
		Help: "Probes of buckets, by their outcome.",
	}, []string{"store", "reason"})

	// DueLag is the delay between the due time of an object and the start of the work
	// on it.
	DueLag = factory.NewHistogram(prometheus.HistogramOpts{
		Name:    "storagebucket_due_lag_seconds",
		Help:    "Time from when an object was due until work on it started.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 300},
	})

	// DriftRepaired counts how often the operator restored a setting, by setting.
	DriftRepaired = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "storagebucket_drift_repaired_total",
		Help: "Settings of buckets that were restored after another client had changed them.",
	}, []string{"setting"})

	// StoreChecks counts checks of stores, by store and reason.
	StoreChecks = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "storagebucket_store_checks_total",
		Help: "Checks of stores, by their outcome.",
	}, []string{"store", "reason"})

	// storeRequests counts requests to all stores, by operation and status.
	storeRequests = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "storagebucket_store_requests_total",
		Help: "Requests to stores, by S3 operation and HTTP status of the response.",
	}, []string{"operation", "code"})

	// limiterWait is the total delay caused by the limits of all stores.
	limiterWait = factory.NewCounter(prometheus.CounterOpts{
		Name: "storagebucket_limiter_wait_seconds_total",
		Help: "Time by which the limits of stores delayed requests.",
	})

	// Notifications counts requests to the notification endpoint, by outcome.
	Notifications = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "storagebucket_notifications_total",
		Help: "Requests to the notification endpoint, by their outcome.",
	}, []string{"outcome"})

	// StatusWrites counts writes of status, by kind of object.
	StatusWrites = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "storagebucket_status_writes_total",
		Help: "Writes of status to the API server.",
	}, []string{"kind"})
)

// noResponse is the label of a request without a response, as in the metrics of client-go.
const noResponse = "<error>"

// StoreRequested counts one request to a store. The status is 0 if there was no response.
func StoreRequested(operation string, status int) {
	code := noResponse
	if status != 0 {
		code = strconv.Itoa(status)
	}
	storeRequests.WithLabelValues(operation, code).Inc()
}

// LimiterWaited adds a delay caused by the limits of a store.
func LimiterWaited(d time.Duration) { limiterWait.Add(d.Seconds()) }

// RegisterBuildInfo adds the metric storagebucket_build_info. The labels version and revision have
// the values that the go command recorded in the program.
func RegisterBuildInfo() {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	c := build.NewCollector("storagebucket", build.WithExtraConstLabels(prometheus.Labels{"version": version}))
	metrics.Registry.Unregister(c) // a collector is identified by its descriptions
	metrics.Registry.MustRegister(c)
}

// ForgetStore drops the series of a store that is gone. name is a result of StoreName.
func ForgetStore(name string) {
	store := prometheus.Labels{"store": name}
	ProbeDuration.DeletePartialMatch(store)
	Probes.DeletePartialMatch(store)
	StoreChecks.DeletePartialMatch(store)
}

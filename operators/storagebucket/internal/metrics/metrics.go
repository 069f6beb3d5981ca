// Package metrics holds the operator's own metrics. They are in controller-runtime's
// registry, so the manager's metrics endpoint serves them.
//
// Single probes are counted here and not in the status of the objects, because a probe
// with the same result as the previous one writes nothing to the API server.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
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

// ForgetStore drops the series of a store that is gone. name is a result of StoreName.
func ForgetStore(name string) {
	store := prometheus.Labels{"store": name}
	ProbeDuration.DeletePartialMatch(store)
	Probes.DeletePartialMatch(store)
	StoreChecks.DeletePartialMatch(store)
}

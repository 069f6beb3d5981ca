// Package metrics holds the operator's own metrics. The metrics of a site are read from the
// cache at each scrape, so they end when the site is deleted.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// counters holds the operator's own counters, which are registered once per process, because a
// process has only one registry.
type counters struct {
	writes   *prometheus.CounterVec
	switches prometheus.Counter
}

var all = newCounters()

func newCounters() counters {
	c := counters{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "markdownview_child_writes_total",
			Help: "Number of writes to the objects that make up sites, by kind and verb.",
		}, []string{"kind", "verb"}),
		switches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "markdownview_switches_total",
			Help: "Number of times that readers were switched to another version of a site.",
		}),
	}
	metrics.Registry.MustRegister(c.writes, c.switches)
	return c
}

// ChildWritten counts a write of a child. The verb is apply or delete.
func ChildWritten(kind, verb string) { all.writes.WithLabelValues(kind, verb).Inc() }

// Switched counts one switch of the readers of a site to another version.
func Switched() { all.switches.Inc() }

package baseline

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

// wanted lists the metrics that show the progress of informers and controllers.
var wanted = []string{
	"informer_store_resource_version", "informer_queued_items", "workqueue_adds_total", "workqueue_work_duration_seconds",
}

// reader reads the wanted metrics of this process. All metrics of the process are hundreds of histograms, and a
// reset looks every few milliseconds, so it reads all of them only until the collectors of the wanted ones are
// known.
type reader struct {
	mu    sync.Mutex
	few   *prometheus.Registry // the collectors that are known
	known map[string]bool      // their metrics
}

var progress = &reader{few: prometheus.NewRegistry(), known: map[string]bool{}}

// gather returns families that include the wanted ones, except those without a value.
func (r *reader) gather() ([]*dto.MetricFamily, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) == len(wanted) {
		return gathered(r.few)
	}
	all, err := gathered(legacyregistry.DefaultGatherer)
	for _, family := range all {
		if name := family.GetName(); slices.Contains(wanted, name) && !r.known[name] && r.adopt(family) {
			r.known[name] = true
		}
	}
	return all, err
}

func gathered(from prometheus.Gatherer) ([]*dto.MetricFamily, error) {
	families, err := from.Gather()
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of this process: %w", err)
	}
	return families, nil
}

// adopt finds the collector of a family. The registry has no method for that, but it names the collector when
// another one with the same description is registered.
func (r *reader) adopt(family *dto.MetricFamily) bool {
	var labels []string
	for _, l := range family.GetMetric()[0].GetLabel() {
		labels = append(labels, l.GetName())
	}
	same := described{prometheus.NewDesc(family.GetName(), family.GetHelp(), labels, nil)}
	err := legacyregistry.Registerer().Register(same)
	if err == nil { // the family has a collector with several descriptions
		legacyregistry.Registerer().Unregister(same)
		return false
	}
	var already prometheus.AlreadyRegisteredError
	return errors.As(err, &already) && r.few.Register(already.ExistingCollector) == nil
}

// described has a description, and no values.
type described struct{ desc *prometheus.Desc }

func (d described) Describe(to chan<- *prometheus.Desc) { to <- d.desc }
func (d described) Collect(chan<- prometheus.Metric)    {}

package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// scrapeLimit limits the time that a scrape waits for the cache.
const scrapeLimit = 5 * time.Second

// gauge is a metric with a series for each site.
type gauge struct {
	desc  *prometheus.Desc
	value func(*viewv1.MarkdownView) float64
}

func newGauge(name, help string, value func(*viewv1.MarkdownView) float64) gauge {
	return gauge{prometheus.NewDesc(name, help, []string{"namespace", "name"}, nil), value}
}

func gauges() []gauge {
	return []gauge{
		newGauge("markdownview_available", "1 while the site is served, else 0.", isTrue(viewv1.ConditionAvailable)),
		newGauge("markdownview_ready", "1 while all viewers serve the newest content, else 0.", isTrue(viewv1.ConditionReady)),
		newGauge("markdownview_degraded", "1 while something that the spec asks for cannot be done, else 0.", isTrue(viewv1.ConditionDegraded)),
		newGauge("markdownview_stalled", "1 while a problem remains until the spec or the cluster changes, else 0.", isTrue(viewv1.ConditionStalled)),
		newGauge("markdownview_suspended", "1 while spec.suspend is set, else 0.", func(v *viewv1.MarkdownView) float64 {
			return number(v.Spec.Suspend)
		}),
		newGauge("markdownview_ready_replicas", "Viewers that serve the newest content.", func(v *viewv1.MarkdownView) float64 {
			return float64(v.Status.ReadyReplicas)
		}),
		newGauge("markdownview_pages", "Pages of the site.", func(v *viewv1.MarkdownView) float64 {
			return float64(v.Status.Pages)
		}),
		newGauge("markdownview_problems", "Problems found in the pages of the site.", func(v *viewv1.MarkdownView) float64 {
			return float64(v.Status.ProblemCount)
		}),
	}
}

func isTrue(condition string) func(*viewv1.MarkdownView) float64 {
	return func(v *viewv1.MarkdownView) float64 {
		return number(meta.IsStatusConditionTrue(v.Status.Conditions, condition))
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Register exports the metrics of sites. The reader should read from a cache. A later call
// replaces the reader.
func Register(reader client.Reader) {
	c := &sites{reader: reader, gauges: gauges()}
	metrics.Registry.Unregister(c) // a collector is identified by its descriptions
	metrics.Registry.MustRegister(c)
}

type sites struct {
	reader client.Reader
	gauges []gauge
}

var _ prometheus.Collector = (*sites)(nil)

// Describe sends the descriptions of all gauges.
func (s *sites) Describe(out chan<- *prometheus.Desc) {
	for _, g := range s.gauges {
		out <- g.desc
	}
}

// Collect sends the metrics of all sites. If the sites cannot be listed, they have no series
// in this scrape; other metrics are not affected.
func (s *sites) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	var list viewv1.MarkdownViewList
	if err := s.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		logf.Log.WithName("metrics").V(1).Info("cannot list the sites for a scrape", "error", err.Error())
		return
	}
	for i := range list.Items {
		v := &list.Items[i]
		for _, g := range s.gauges {
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(v), v.Namespace, v.Name)
		}
	}
}

package metrics

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// cached is a cache with these sites, or a cache that cannot be read.
type cached struct {
	client.Reader
	sites []viewv1.MarkdownView
	err   error
}

func (c cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*viewv1.MarkdownViewList).Items = c.sites
	return c.err
}

// scrape returns the value of each metric of the only site.
func scrape(t *testing.T, reader client.Reader) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&sites{reader: reader, gauges: gauges()})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			if want := map[string]string{"namespace": "docs", "name": "site"}; !maps.Equal(labels, want) {
				t.Errorf("%s has the labels %v", family.GetName(), labels)
			}
			found[family.GetName()] = m.GetGauge().GetValue()
		}
	}
	return found
}

func TestEachConditionHasAMetricOfItsOwn(t *testing.T) {
	all := map[string]string{
		viewv1.ConditionAvailable: "markdownview_available",
		viewv1.ConditionReady:     "markdownview_ready",
		viewv1.ConditionDegraded:  "markdownview_degraded",
		viewv1.ConditionStalled:   "markdownview_stalled",
	}
	for condition, metric := range all {
		view := viewv1.MarkdownView{ObjectMeta: metav1.ObjectMeta{Namespace: "docs", Name: "site"}}
		view.Spec.Suspend = true
		view.Status = viewv1.MarkdownViewStatus{Pages: 7, ReadyReplicas: 2, ProblemCount: 3}
		want := map[string]float64{
			"markdownview_suspended": 1, "markdownview_pages": 7, "markdownview_ready_replicas": 2, "markdownview_problems": 3,
		}
		for c, m := range all {
			status := metav1.ConditionFalse
			if c == condition {
				status = metav1.ConditionTrue
			}
			view.Status.Conditions = append(view.Status.Conditions, metav1.Condition{Type: c, Status: status})
			want[m] = number(c == condition)
		}
		if diff := cmp.Diff(want, scrape(t, cached{sites: []viewv1.MarkdownView{view}})); diff != "" {
			t.Errorf("%s, for the condition %s (-want +got):\n%s", metric, condition, diff)
		}
	}
}

func TestACacheThatCannotBeReadSpoilsNoScrape(t *testing.T) {
	if found := scrape(t, cached{err: errors.New("not yet")}); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

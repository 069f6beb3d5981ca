package baseline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/legacyregistry"
)

func TestTheKnownCollectorsHaveTheMetricsOfTheProcess(t *testing.T) {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "metrics-test"})
	t.Cleanup(queue.ShutDown)
	queue.Add("a")
	queue.Get()
	queue.Done("a")
	r := &reader{few: prometheus.NewRegistry(), known: map[string]bool{}}
	if _, err := r.gather(); err != nil {
		t.Fatal(err)
	}
	of := func(from prometheus.Gatherer) map[string]*dto.MetricFamily {
		families, err := gathered(from)
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]*dto.MetricFamily{}
		for _, family := range families {
			named[family.GetName()] = family
		}
		return named
	}
	few, all := of(r.few), of(legacyregistry.DefaultGatherer)
	if len(few) == 0 || len(few) != len(r.known) {
		t.Errorf("%d collectors are known, and %d have values", len(r.known), len(few))
	}
	for _, name := range []string{"workqueue_adds_total", "workqueue_work_duration_seconds"} {
		if diff := cmp.Diff(all[name], few[name], protocmp.Transform()); diff != "" || few[name] == nil {
			t.Errorf("%s, -process +known:\n%s", name, diff)
		}
	}
}

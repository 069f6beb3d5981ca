package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// scrapeLimit limits how long a scrape waits for a cache that is not synced yet.
const scrapeLimit = 5 * time.Second

var (
	statuses = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}

	bucketConditions = []string{storagev1.ConditionReady, storagev1.ConditionSynced, storagev1.ConditionHealthy}
	storeConditions  = []string{storagev1.ConditionReady, storagev1.ConditionHealthy}

	bucketsDesc = prometheus.NewDesc("storagebucket_buckets",
		"StorageBuckets, by the status of each of their conditions.", []string{"condition", "status"}, nil)
	storesDesc = prometheus.NewDesc("storagebucket_stores",
		"ObjectStores, by the status of each of their conditions.", []string{"condition", "status"}, nil)
)

// RegisterBuckets makes each scrape count StorageBuckets and ObjectStores. The reader
// should read from a cache. If RegisterBuckets is called again, the new reader replaces
// the previous one.
func RegisterBuckets(reader client.Reader) {
	c := &objects{reader: reader}
	metrics.Registry.Unregister(c) // a collector is identified by its descriptions
	metrics.Registry.MustRegister(c)
}

// objects counts objects by condition. There is a series for each combination of a
// condition and a status, even if no object has this combination, so that alerts always
// have a value.
type objects struct{ reader client.Reader }

var _ prometheus.Collector = (*objects)(nil)

// Describe sends the descriptions of both gauges.
func (*objects) Describe(out chan<- *prometheus.Desc) {
	out <- bucketsDesc
	out <- storesDesc
}

// Collect sends the counts. If objects cannot be listed, their series are missing from
// this scrape, and all other metrics are still sent.
func (o *objects) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	var buckets storagev1.StorageBucketList
	if o.list(ctx, &buckets) {
		counts := newCounts(bucketConditions)
		for i := range buckets.Items {
			counts.add(buckets.Items[i].Status.Conditions)
		}
		counts.send(bucketsDesc, out)
	}
	var stores storagev1.ObjectStoreList
	if o.list(ctx, &stores) {
		counts := newCounts(storeConditions)
		for i := range stores.Items {
			counts.add(stores.Items[i].Status.Conditions)
		}
		counts.send(storesDesc, out)
	}
}

// list reads the cached objects themselves, which must not be changed. list reports whether
// the objects could be listed.
func (o *objects) list(ctx context.Context, list client.ObjectList) bool {
	if err := o.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		logf.Log.WithName("metrics").V(1).Info("cannot count objects for a scrape", "error", err.Error())
		return false
	}
	return true
}

// counts holds the number of objects by condition and status.
type counts map[string]map[metav1.ConditionStatus]int

func newCounts(conditions []string) counts {
	c := counts{}
	for _, condition := range conditions {
		c[condition] = map[metav1.ConditionStatus]int{}
	}
	return c
}

// add counts one object. A condition that the object does not have is counted as Unknown.
func (c counts) add(conditions []metav1.Condition) {
	for condition, byStatus := range c {
		status := metav1.ConditionUnknown
		if found := meta.FindStatusCondition(conditions, condition); found != nil {
			status = found.Status
		}
		byStatus[status]++
	}
}

func (c counts) send(desc *prometheus.Desc, out chan<- prometheus.Metric) {
	for condition, byStatus := range c {
		for _, status := range statuses {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue,
				float64(byStatus[status]), condition, string(status))
		}
	}
}

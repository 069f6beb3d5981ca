package baseline

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
)

func TestIdleNeedsEveryQueueToBeWorkedOff(t *testing.T) {
	const name = "reset-test"
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: name})
	t.Cleanup(queue.ShutDown)
	for _, step := range []struct {
		what string
		do   func()
		busy bool
	}{
		{"new", func() {}, false},
		{"an item waits", func() { queue.Add("a") }, true},
		{"an item is worked on", func() { queue.Get() }, true},
		{"it is added again in the meantime", func() { queue.Add("a") }, true},
		{"it is worked on again", func() { queue.Done("a"); queue.Get() }, true},
		{"all is done", func() { queue.Done("a") }, false},
	} {
		step.do()
		// The error may first name other queues of the process, but eventually
		// it names the queue of this test.
		if err := idle(nil); (err != nil && strings.Contains(err.Error(), name)) != step.busy {
			t.Errorf("%s: %v, want the queue to be named: %t", step.what, err, step.busy)
		}
	}
}

func TestAnInformerThatIsBehindIsNamed(t *testing.T) {
	t.Parallel()
	now := activity{informers: map[informer]float64{
		{"garbage-collector", "/namespaces"}: 7,
		{"kube-scheduler", "/pods"}:          3,
	}}
	reached := map[schema.GroupKind]int64{namespaceKind: 7, podKind: 9}
	if err := now.idle(reached); err != nil {
		t.Errorf("%v; want no error, since only the scheduler is behind, which does not see all Pods", err)
	}
	reached[namespaceKind] = 8
	if err := now.idle(reached); err == nil || !strings.Contains(err.Error(), "garbage-collector has not seen all changes to /namespaces") {
		t.Errorf("an informer that is behind: %v, want an error that names the informer and its resource", err)
	}
}

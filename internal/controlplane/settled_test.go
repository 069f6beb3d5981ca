package controlplane

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

func TestReadsAndDiscoveryShowTheBaselineTheMomentResetReturns(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, "api", 0)
	l.create(namespaces, "", object("v1", "Namespace", "base"))
	l.checkpoint()
	for round := range 2 {
		l.define(widgetDefinition(map[string]string{"size": "integer"}))
		for i := range 300 {
			l.create(widgets, "base", widget("w-"+strconv.Itoa(i), false))
			l.create(configMaps, "base", configMap("c-"+strconv.Itoa(i), "extra"))
		}
		l.reset()
		if list, err := l.dynamic.Resource(widgets).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); !apierrors.IsNotFound(err) {
			t.Errorf("round %d: widgets are served: %v, %v", round, list, err)
		}
		list, err := l.dynamic.Resource(configMaps).Namespace("base").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		l.ok(err)
		if len(list.Items) > 0 {
			t.Errorf("round %d: %d config maps are read that are gone", round, len(list.Items))
		}
		if _, err := l.typed.Discovery().ServerResourcesForGroupVersion("example.com/v1"); !apierrors.IsNotFound(err) {
			t.Errorf("round %d: discovery tells of widgets: %v", round, err)
		}
	}
}

func TestPlaneHasNotSettledWhileSomethingShowsWhatWasUndone(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, "api", 0)
	l.furnish()
	l.checkpoint()
	stored, err := l.get(definitions, "", "widgets.example.com")
	l.ok(err)
	value, err := stored.MarshalJSON()
	l.ok(err)
	undone := func(wanted bool) *round {
		r := newRound(l.Plane)
		difference := storage.Difference{Key: "widgets.example.com", Now: value}
		if wanted {
			difference.Then = value
		}
		c := change{Difference: difference, object: readStored(value)}
		r.note([]change{c}, map[string]int64{c.Key: version(t, stored)})
		return r
	}
	l.until("a plane that serves what it should", func(ctx context.Context) (bool, error) { return true, undone(true).settled(ctx) })
	if err := undone(false).settled(t.Context()); err == nil || !strings.Contains(err.Error(), "widgets") {
		t.Errorf("a CRD that is not in the baseline is served: %v, want that it is named", err)
	}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "reset-busy"})
	t.Cleanup(queue.ShutDown)
	queue.Add("a")
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := l.Reset(soon); err == nil || !strings.Contains(err.Error(), "reset-busy") {
		t.Errorf("Reset while a controller has work to do: %v, want that its queue is named", err)
	}
	queue.Get()
	queue.Done("a")
	l.reset()
	late := newRound(l.Plane)
	late.reached[schema.GroupKind{Kind: "ConfigMap"}] = version(t, stored) + 1_000_000
	if err := late.readable(t.Context()); err == nil || !strings.Contains(err.Error(), "ConfigMap") {
		t.Errorf("a watch cache that is behind: %v, want that its kind is named", err)
	}
	behind := map[schema.GroupKind]int64{namespaceKind: version(t, stored) + 1_000_000}
	if err := idle(behind); err == nil || !strings.Contains(err.Error(), "namespaces") {
		t.Errorf("an informer that is behind: %v, want that its resource is named", err)
	}
}

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
		// Other queues of the process may be named first; this one is named
		// eventually.
		if err := idle(nil); (err != nil && strings.Contains(err.Error(), name)) != step.busy {
			t.Errorf("%s: %v, want that the queue is named: %t", step.what, err, step.busy)
		}
	}
}

package apiproxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

func configMaps(t trace.Target) bool { return t.Resource == "configmaps" }

// inform runs an informer, and returns its notifications in the form "add
// one=1".
func inform(t *testing.T, c *rest.Config, asProtobuf bool) (told chan string, has func() bool) {
	t.Helper()
	told = make(chan string, 1000)
	factory := informers.NewSharedInformerFactoryWithOptions(clientset(t, c, asProtobuf), 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	tell := func(what string, obj any) {
		if late, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = late.Obj
		}
		m := obj.(*corev1.ConfigMap)
		told <- fmt.Sprintf("%s %s=%s", what, m.Name, m.Data["v"])
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tell("add", obj) },
		UpdateFunc: func(_, obj any) { tell("update", obj) },
		DeleteFunc: func(obj any) { tell("delete", obj) },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	return told, informer.HasSynced
}

func hear(t *testing.T, told chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-told:
			if got != w {
				t.Fatalf("the informer reported %q, want %q", got, w)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the informer never reported %q", w)
		}
	}
}

// bothEncodings runs a test with an informer that uses JSON and with one that
// uses protobuf.
func bothEncodings(t *testing.T, f func(t *testing.T, asProtobuf bool)) {
	t.Run("JSON", func(t *testing.T) { f(t, false) })
	t.Run("protobuf", func(t *testing.T) { f(t, true) })
}

func TestHeldEventsComeInOrderAndNoneIsLost(t *testing.T) {
	bothEncodings(t, func(t *testing.T, asProtobuf bool) {
		a := newAPI(t)
		a.put("one", "1")
		log := trace.NewLog(time.Now())
		p, c := through(t, a, func(c *Config) { c.Log = log })
		told, _ := inform(t, c, asProtobuf)
		hear(t, told, "add one=1")
		until(t, p, func(a Activity) bool { return len(a.Streams) == 1 && !a.Streams[0].Initial })

		p.Hold(configMaps)
		want := []string{}
		for i := range 200 {
			a.put(fmt.Sprintf("n%03d", i), "x")
			want = append(want, fmt.Sprintf("add n%03d=x", i))
		}
		last := a.put("one", "2")
		want = append(want, "update one=2")
		until(t, p, func(a Activity) bool { return a.Streams[0].Held == 201 })
		if s := p.Activity().Streams[0]; s.ResourceVersion != "101" || len(told) != 0 {
			t.Fatalf("while the watch was held, %d events came through; the stream is %+v", len(told), s)
		}
		p.Release()
		hear(t, told, want...)
		until(t, p, func(a Activity) bool {
			return a.Streams[0].Held == 0 && a.Streams[0].ResourceVersion == fmt.Sprint(last)
		})
		for _, e := range log.Entries() {
			if e.Watch != nil && e.Watch.ResourceVersion == fmt.Sprint(last) && e.Watch.Held == 0 {
				t.Error("the trace does not show that the event was held")
			}
		}
	})
}

func TestWatchThatBeginsWhileHeldGetsNothingBeforeRelease(t *testing.T) {
	a := newAPI(t)
	a.put("one", "1")
	p, c := through(t, a, nil)
	p.Hold(configMaps)
	told, synced := inform(t, c, false)
	until(t, p, func(a Activity) bool { return len(a.Streams) == 1 && a.Streams[0].Held == 2 })
	if synced() || len(told) != 0 {
		t.Error("the informer has synced though its initial events are held")
	}
	p.Release()
	hear(t, told, "add one=1")
}

func TestWatchesOfOtherTypesAreNotHeld(t *testing.T) {
	a := newAPI(t)
	p, c := through(t, a, nil)
	p.Hold(func(t trace.Target) bool { return t.Resource == "pods" })
	told, _ := inform(t, c, false)
	a.put("one", "1")
	hear(t, told, "add one=1")
	p.Release()
}

func TestExpiredWatchLosesStatesAndListsAgain(t *testing.T) {
	bothEncodings(t, func(t *testing.T, asProtobuf bool) {
		a := newAPI(t)
		a.put("one", "1")
		p, c := through(t, a, nil)
		told, _ := inform(t, c, asProtobuf)
		hear(t, told, "add one=1")

		p.Hold(configMaps)
		a.put("one", "lost")
		a.put("one", "2")
		a.put("two", "2")
		until(t, p, func(a Activity) bool { return len(a.Streams) == 1 && a.Streams[0].Held == 3 })
		p.Expire(configMaps)
		p.Release()
		// A list has no order, so the order of the informer's notifications is
		// not defined.
		news := []string{<-told, <-told}
		slices.Sort(news)
		if diff := cmp.Diff([]string{"add two=2", "update one=2"}, news); diff != "" {
			t.Fatalf("after the list, the informer reported (-want +got):\n%s", diff)
		}
		a.put("two", "3")
		hear(t, told, "update two=3")
	})
}

func TestResumingAnExpiredWatchIsRefusedOnceAndNotAfterAList(t *testing.T) {
	a := newAPI(t)
	a.put("one", "1")
	p, c := through(t, a, nil)
	maps := clientset(t, c, false).CoreV1().ConfigMaps("default")
	begin := func() watch.Interface {
		w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "101"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		return w
	}
	first := begin()
	p.Expire(configMaps)
	wantGone(t, first)
	wantGone(t, begin())
	third := begin()
	a.put("one", "2")
	if e := <-third.ResultChan(); e.Type != watch.Modified {
		t.Errorf("the second resumption got %v, want the event", e)
	}
	p.Expire(configMaps)
	wantGone(t, third)
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := <-begin().ResultChan(); e.Type != watch.Modified {
		t.Errorf("after a list the watch got %v, want the event", e)
	}
}

func TestAWatchThatGetsAllObjectsAgainEndsAtItsTimeout(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	for name, tt := range map[string]struct {
		options metav1.ListOptions
		want    time.Duration
	}{
		"it begins with all objects":   {metav1.ListOptions{TimeoutSeconds: seconds(300)}, 300 * time.Second},
		"it begins with any version":   {metav1.ListOptions{TimeoutSeconds: seconds(300), ResourceVersion: "0"}, 300 * time.Second},
		"it declares no timeout":       {metav1.ListOptions{}, 0},
		"its timeout is too long":      {metav1.ListOptions{TimeoutSeconds: seconds(3600)}, 0},
		"it resumes at a version":      {metav1.ListOptions{TimeoutSeconds: seconds(300), ResourceVersion: "101"}, 0},
		"it takes the place of a list": {initialEvents(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.put("one", "1")
			p, c := through(t, a, nil)
			w, err := clientset(t, c, false).CoreV1().ConfigMaps("default").Watch(t.Context(), tt.options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			until(t, p, func(a Activity) bool { return len(a.Streams) == 1 })
			if got := p.Timeout(10 * time.Minute); got != tt.want {
				t.Errorf("the timeout is %s, not %s", got, tt.want)
			}
			p.TimeOut(10 * time.Minute)
			if tt.want == 0 {
				if len(p.Activity().Streams) != 1 {
					t.Error("the watch was ended")
				}
				return
			}
			for e := range w.ResultChan() {
				if e.Type == watch.Error {
					t.Errorf("the watch ended with %v", e)
				}
			}
			until(t, p, func(a Activity) bool { return len(a.Streams) == 0 })
		})
	}
}

func initialEvents() metav1.ListOptions {
	yes, seconds := true, int64(300)
	return metav1.ListOptions{SendInitialEvents: &yes, TimeoutSeconds: &seconds, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true}
}

func wantGone(t *testing.T, w watch.Interface) {
	t.Helper()
	e, ok := <-w.ResultChan()
	if !ok || e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Fatalf("the watch got %v, want 410 Expired", e)
	}
	if _, ok := <-w.ResultChan(); ok {
		t.Fatal("the watch continues after 410")
	}
}

func TestOldServerMakesInformersListAnyState(t *testing.T) {
	a := newAPI(t)
	a.put("one", "1")
	_, c := through(t, a, func(c *Config) { c.OldServer = true })
	told, _ := inform(t, c, true)
	hear(t, told, "add one=1")
	a.put("one", "2")
	hear(t, told, "update one=2")
	listed := false
	for _, r := range a.requests() {
		listed = listed || strings.Contains(r, "resourceVersion=0") && !strings.Contains(r, "watch=true")
	}
	if !listed {
		t.Errorf("the informer did not list with resourceVersion=0: %v", a.requests())
	}
}

// showPast makes the proxy show ConfigMaps at a version. showPast returns the number of lists that
// were shown, and the reasons why lists were not shown.
func showPast(p *Proxy, version int) (shown *atomic.Int32, reasons chan string) {
	shown, reasons = &atomic.Int32{}, make(chan string, 10)
	p.Past(&Past{
		Resource: configMaps, ResourceVersion: fmt.Sprint(version),
		Shown:  func() { shown.Add(1) },
		Failed: func(reason string) { reasons <- reason },
	})
	return shown, reasons
}

func TestPastIsShownToWhomAskedForAnyState(t *testing.T) {
	a := newAPI(t)
	old := a.put("one", "1")
	p, c := through(t, a, func(c *Config) { c.OldServer = true })
	shown, _ := showPast(p, old)
	a.put("one", "2")
	for _, asProtobuf := range []bool{false, true} {
		maps := clientset(t, c, asProtobuf).CoreV1().ConfigMaps("default")
		for rv, want := range map[string]string{"0": "1", "": "2", "101": "2"} {
			list, err := maps.List(t.Context(), metav1.ListOptions{ResourceVersion: rv, Limit: 500, LabelSelector: "a!=b"})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].Data["v"] != want {
				t.Errorf("a list with resourceVersion=%q shows %v, want one=%s", rv, list.Items, want)
			}
			if got := shown.Swap(0); (got == 1) != (rv == "0") {
				t.Errorf("a list with resourceVersion=%q counts as %d older lists", rv, got)
			}
		}
	}
	want := fmt.Sprintf("GET /api/v1/namespaces/default/configmaps?labelSelector=a%%21%%3Db&resourceVersion=%d&resourceVersionMatch=Exact", old)
	if !slices.Contains(a.requests(), want) {
		t.Errorf("the server was not asked %q: %v", want, a.requests())
	}
	// The informer sees the old state first, and then the changes since then.
	told, _ := inform(t, c, true)
	hear(t, told, "add one=1", "update one=2")
}

func TestPastIsNoLongerShownOnceItEnds(t *testing.T) {
	a := newAPI(t)
	old := a.put("one", "1")
	p, c := through(t, a, nil)
	showPast(p, old)
	a.put("one", "2")
	p.Past(nil)
	list, err := clientset(t, c, false).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Data["v"] != "2" {
		t.Errorf("the list shows %v, %v", list, err)
	}
}

func TestCurrentStateIsShownIfThePastIsCompacted(t *testing.T) {
	a := newAPI(t)
	old := a.put("one", "1")
	p, c := through(t, a, nil)
	shown, reasons := showPast(p, old)
	a.put("one", "2")
	a.compacted = old + 1
	list, err := clientset(t, c, false).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Data["v"] != "2" {
		t.Errorf("the list shows %v, %v", list, err)
	}
	if reason := <-reasons; !strings.Contains(reason, "the revision is compacted") || shown.Load() != 0 {
		t.Errorf("the reason is %q, and %d lists count as older", reason, shown.Load())
	}
}

func TestHundredWatchesAtOnceAllGetEachEvent(t *testing.T) {
	a := newAPI(t)
	_, c := through(t, a, nil)
	maps := clientset(t, c, true).CoreV1().ConfigMaps("default")
	var all []watch.Interface
	for range 120 {
		w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "100"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		all = append(all, w)
	}
	a.put("one", "1")
	for i, w := range all {
		if e := <-w.ResultChan(); e.Type != watch.Added {
			t.Fatalf("watch %d got %v", i, e)
		}
	}
}

func TestClosedWatchEndsTheOneAtTheServer(t *testing.T) {
	a := newAPI(t)
	log := trace.NewLog(time.Now())
	p, c := through(t, a, func(c *Config) { c.Log = log })
	w, err := clientset(t, c, false).CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "100"})
	if err != nil {
		t.Fatal(err)
	}
	a.put("one", "1")
	<-w.ResultChan()
	w.Stop()
	until(t, p, func(a Activity) bool { return len(a.Streams) == 0 })
	var got []string
	for _, e := range log.Entries() {
		switch {
		case e.Call != nil:
			got = append(got, fmt.Sprint(e.Call.Verb, " ", e.Call.Code))
		case e.Watch != nil:
			got = append(got, e.Watch.Type+" "+e.Watch.ResourceVersion)
		}
	}
	if diff := cmp.Diff([]string{"watch 200", "ADDED 101", "CLOSED "}, got); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

func TestStreamsAreFlushedAtOnceOverHTTP1(t *testing.T) {
	a := newAPI(t)
	_, c := through(t, a, nil)
	c = http1(c)
	transport, err := rest.TransportFor(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Host+"/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=100", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := json.NewDecoder(resp.Body)
	for i := range 3 {
		rv := a.put("one", fmt.Sprint(i))
		var e struct {
			Object corev1.ConfigMap `json:"object"`
		}
		if err := lines.Decode(&e); err != nil || e.Object.ResourceVersion != fmt.Sprint(rv) {
			t.Fatalf("event %d is at %q, want %d: %v", i, e.Object.ResourceVersion, rv, err)
		}
	}
}

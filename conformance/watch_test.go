package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestResumedWatchMissesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	const objects, resumeAfter = 60, 7
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.waitForRootCA(t, ns)
	from := p.listVersion(t, ns)
	written := make(chan error, 1)
	go func() { written <- p.createChangeDelete(t.Context(), ns, objects) }()

	whole := p.watchConfigMaps(t, ns, metav1.ListOptions{ResourceVersion: from})
	resumed := p.watchConfigMaps(t, ns, metav1.ListOptions{ResourceVersion: from})
	var want, got []string
	for len(want) < 3*objects {
		want = append(want, describe(t, nextEvent(t, whole)))
	}
	for len(got) < len(want) {
		event := nextEvent(t, resumed)
		got = append(got, describe(t, event))
		if len(got)%resumeAfter == 0 {
			resumed.Stop()
			resumed = p.watchConfigMaps(t, ns, metav1.ListOptions{ResourceVersion: versionOf(t, event)})
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("resumed every %d events, the watch delivered\n%v\nwithout a break it delivered\n%v", resumeAfter, got, want)
	}
}

// Upstream sends a bookmark every minute, and also two seconds before the timeout of the
// watch. This test waits for the bookmark that comes two seconds before the timeout.
// Upstream sends that bookmark only if an object that the watch does not select has changed
// since the watch started.
func TestBookmarkArrivesBeforeAWatchTimesOut(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	from, timeout := p.create(t, ns, "selected").ResourceVersion, int64(3)
	// On a busy machine a watch may end before its bookmark is ready.
	eventually(t, "a bookmark", func(context.Context) error {
		w := p.watchConfigMaps(t, ns, metav1.ListOptions{
			FieldSelector: "metadata.name=selected", ResourceVersion: from, AllowWatchBookmarks: true, TimeoutSeconds: &timeout,
		})
		other := func(cm *corev1.ConfigMap) { cm.GenerateName = "other-" }
		latest := number(t, p.create(t, ns, "", other).ResourceVersion)
		event, ok := <-w.ResultChan()
		if !ok {
			return errors.New("the watch ended without a bookmark")
		}
		if event.Type != watch.Bookmark {
			t.Fatalf("event %s of an object that is not selected", event.Type)
		}
		if rv := number(t, versionOf(t, event)); rv < latest {
			return fmt.Errorf("the bookmark is at %d; the last change was at %d", rv, latest)
		}
		return nil
	})
}

func TestInitialEventsEndWithABookmark(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.waitForRootCA(t, ns)
	p.create(t, ns, "first")
	p.create(t, ns, "second")
	initial := true
	w := p.watchConfigMaps(t, ns, metav1.ListOptions{
		SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	var names []string
	for {
		event := nextEvent(t, w)
		object, err := meta.Accessor(event.Object)
		if err != nil {
			t.Fatal(err)
		}
		if event.Type == watch.Bookmark {
			if object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("the bookmark after the initial events has annotations %v", object.GetAnnotations())
			}
			break
		}
		if event.Type != watch.Added {
			t.Fatalf("an initial event is %s of %s", event.Type, object.GetName())
		}
		names = append(names, object.GetName())
	}
	if err := wantSet("initial events", names, []string{rootCA, "first", "second"}); err != nil {
		t.Error(err)
	}
}

// The watch cache has no events from before its own start. A client that asks for an
// older version must list again.
func TestWatchFromBeforeARestartAnswersGone(t *testing.T) {
	t.Parallel()
	p := startPlane(t, "--profile=api")
	old := p.create(t, "default", "a").ResourceVersion
	p.create(t, "default", "b")
	p.stop()
	p = startPlaneIn(t, p.dir, "--profile=api")
	p.create(t, "default", "c") // so that a watch that succeeds delivers an event
	mustBeExpired(t, p.watchError(t.Context(), "default", old))
}

func TestWatchFromACompactedResourceVersionAnswersGone(t *testing.T) {
	t.Parallel()
	p := compactingPlane(t)
	old := p.create(t, "default", "a").ResourceVersion
	p.create(t, "default", "b")
	p.waitForCompaction(t, "default", old)
	mustBeExpired(t, p.watchError(t.Context(), "default", old))
}

func TestListOfACompactedResourceVersionAnswersExpired(t *testing.T) {
	t.Parallel()
	p := compactingPlane(t)
	client := p.client.CoreV1().ConfigMaps("default")
	exactly := metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	objects := 0
	// On a busy machine the compaction may come before the list.
	eventually(t, "a list at an old resource version, before its compaction", func(ctx context.Context) error {
		exactly.ResourceVersion = p.create(t, "default", "a"+strconv.Itoa(objects)).ResourceVersion
		p.create(t, "default", "b"+strconv.Itoa(objects))
		objects += 2
		list, err := client.List(ctx, exactly)
		if err != nil {
			return err
		}
		return wantCount("objects", len(list.Items), objects-1)
	})
	p.waitForCompaction(t, "default", exactly.ResourceVersion)
	_, err := client.List(t.Context(), exactly)
	mustBeExpired(t, err)
}

func TestContinuationOfACompactedListAnswersExpiredWithANewContinuation(t *testing.T) {
	t.Parallel()
	p := compactingPlane(t)
	p.create(t, "default", "a")
	p.create(t, "default", "b")
	first, err := p.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	p.create(t, "default", "c")
	p.waitForCompaction(t, "default", first.ResourceVersion)
	_, err = p.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{Limit: 1, Continue: first.Continue})
	mustBeExpired(t, err)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Continue == "" {
		t.Fatalf("%v offers no way to continue", err)
	}
	rest, err := p.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{Continue: status.Status().Continue})
	if err != nil || len(rest.Items) != 2 {
		t.Errorf("the new continuation lists %v, error %v; want b and c", rest, err)
	}
}

// compactingPlane starts a plane whose etcd drops revisions older than two seconds.
// The watch cache is off, because it keeps its own history; without it clients notice the
// compaction immediately.
func compactingPlane(t *testing.T) *plane {
	t.Helper()
	return startPlane(t, "--profile=api", "--ephemeral", "--kube-apiserver-arg=watch-cache=false", "--kube-apiserver-arg=etcd-compaction-interval=1s")
}

func (p *plane) waitForCompaction(t *testing.T, ns, rv string) {
	t.Helper()
	eventually(t, "the compaction of resource version "+rv, func(ctx context.Context) error {
		if p.watchError(ctx, ns, rv) == nil {
			return errors.New("a watch from this version still succeeds")
		}
		return nil
	})
}

// watchError returns the error that is the first event of a watch from rv, or nil if the
// first event is not an error.
func (p *plane) watchError(ctx context.Context, ns, rv string) error {
	w, err := p.client.CoreV1().ConfigMaps(ns).Watch(ctx, metav1.ListOptions{ResourceVersion: rv})
	if err != nil {
		return err
	}
	defer w.Stop()
	select {
	case event := <-w.ResultChan():
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
	case <-time.After(within):
	}
	return nil
}

func mustBeExpired(t *testing.T, err error) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusGone || !apierrors.IsResourceExpired(err) {
		t.Errorf("the answer is %v; want 410 Gone, reason Expired", err)
	}
}

func (p *plane) watchConfigMaps(t *testing.T, ns string, o metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := p.client.CoreV1().ConfigMaps(ns).Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// waitForRootCA waits until upstream's controller has written its ConfigMap into a
// new namespace, so that a test counts only its own writes.
func (p *plane) waitForRootCA(t *testing.T, ns string) {
	t.Helper()
	eventually(t, rootCA, func(ctx context.Context) error {
		_, err := p.client.CoreV1().ConfigMaps(ns).Get(ctx, rootCA, metav1.GetOptions{})
		return err
	})
}

func (p *plane) listVersion(t *testing.T, ns string) string {
	t.Helper()
	list, err := p.client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.ResourceVersion
}

// createChangeDelete causes three events per object.
func (p *plane) createChangeDelete(ctx context.Context, ns string, objects int) error {
	client := p.client.CoreV1().ConfigMaps(ns)
	for i := range objects {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "object-" + strconv.Itoa(i)}}
		cm, err := client.Create(ctx, cm, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		cm.Data = map[string]string{"changed": "yes"}
		if _, err := client.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if err := client.Delete(ctx, cm.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func describe(t *testing.T, event watch.Event) string {
	t.Helper()
	object, err := meta.Accessor(event.Object)
	if err != nil {
		t.Fatalf("event %s holds %v: %v", event.Type, event.Object, err)
	}
	return fmt.Sprintf("%s %s at %s", event.Type, object.GetName(), object.GetResourceVersion())
}

func versionOf(t *testing.T, event watch.Event) string {
	t.Helper()
	object, err := meta.Accessor(event.Object)
	if err != nil {
		t.Fatalf("event %s holds %v: %v", event.Type, event.Object, err)
	}
	return object.GetResourceVersion()
}

// number turns a resource version into a number, so that versions of the same resource
// can be compared, as upstream's clients may do since v1.35.
func number(t *testing.T, rv string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

package refs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const patience = 30 * time.Second

func owner(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "owners", Name: name}
}

func configMap(namespace, name string) Ref {
	return Ref{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespace: namespace, Name: name}
}

// rig is a running Watcher.
type rig struct {
	*Watcher
	t *testing.T
	// told receives each owner that is enqueued.
	told chan types.NamespacedName
	// stop ends the context of the Watcher.
	stop context.CancelFunc
}

// newRig returns a Watcher that has been started.
func newRig(t *testing.T, config *rest.Config, logger logr.Logger) *rig {
	t.Helper()
	r := newIdleRig(t, config)
	r.start(logger)
	return r
}

func newIdleRig(t *testing.T, config *rest.Config) *rig {
	t.Helper()
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Watcher: New(client), t: t, told: make(chan types.NamespacedName, 10_000)}
}

func (r *rig) start(logger logr.Logger) {
	r.t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	ctx, cancel := context.WithCancel(logf.IntoContext(context.Background(), logger))
	r.stop = cancel
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		for {
			request, end := q.Get()
			if end {
				return
			}
			r.told <- request.NamespacedName
			q.Done(request)
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		q.ShutDown()
		<-passed
	})
	if err := r.Start(ctx, q); err != nil {
		r.t.Fatal(err)
	}
}

// wantTold waits until each of these owners has been enqueued once, in any order.
func (r *rig) wantTold(owners ...types.NamespacedName) {
	r.t.Helper()
	missing := map[types.NamespacedName]bool{}
	for _, o := range owners {
		missing[o] = true
	}
	late := time.After(patience)
	for len(missing) > 0 {
		select {
		case got := <-r.told:
			if !missing[got] {
				r.t.Fatalf("%v is enqueued, while %v are missing", got, missing)
			}
			delete(missing, got)
		case <-late:
			r.t.Fatalf("%v are not enqueued", missing)
		}
	}
}

// wantNoMore checks that no other owners have been enqueued.
func (r *rig) wantNoMore() {
	r.t.Helper()
	if len(r.told) > 0 {
		r.t.Errorf("%d more owners are enqueued; the first is %v", len(r.told), <-r.told)
	}
}

func eventually(t *testing.T, condition func() bool, format string, args ...any) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf(format, args...)
		}
	}
}

// newNamespace creates a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns, err := api.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "refs-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{})
	})
	return ns.Name
}

func create(t *testing.T, namespace, name string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := api.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// change changes the content of the ConfigMap.
func change(t *testing.T, namespace, name, content string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": content}}
	if _, err := api.CoreV1().ConfigMaps(namespace).Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, namespace, name string) {
	t.Helper()
	if err := api.CoreV1().ConfigMaps(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestOwnerIsToldOfTheFirstListingOfChangesOfDeletionAndOfReturn(t *testing.T) {
	ns := newNamespace(t)
	r := newRig(t, config, logr.Discard())
	r.Want(owner("a"), configMap(ns, "pages"))
	r.wantTold(owner("a")) // otherwise a deletion before the first list would be missed

	create(t, ns, "pages")
	r.wantTold(owner("a"))
	change(t, ns, "pages", "1")
	r.wantTold(owner("a"))
	create(t, ns, "pages-of-others") // is not reported
	remove(t, ns, "pages")
	r.wantTold(owner("a"))
	create(t, ns, "pages")
	r.wantTold(owner("a"))
	r.wantNoMore()
}

func TestObjectsOfTheSameNameAreSeveral(t *testing.T) {
	ns, other := newNamespace(t), newNamespace(t)
	r := newRig(t, config, logr.Discard())
	service := Ref{Resource: corev1.SchemeGroupVersion.WithResource("services"), Namespace: ns, Name: "x"}
	r.Want(owner("a"), configMap(ns, "x"))
	r.Want(owner("b"), configMap(other, "x"))
	r.Want(owner("c"), service)
	r.wantTold(owner("a"), owner("b"), owner("c"))
	create(t, other, "x")
	r.wantTold(owner("b"))
	create(t, ns, "x")
	r.wantTold(owner("a"))
	r.wantNoMore()
}

func TestOneWatchServesAllOwnersAndEndsWithTheLast(t *testing.T) {
	ns := newNamespace(t)
	spy := &watchSpy{}
	r := newRig(t, spy.wrap(config), logr.Discard())
	ref := configMap(ns, "pages")
	r.Want(owner("a"), ref)
	r.wantTold(owner("a"))
	r.Want(owner("b"), ref)
	create(t, ns, "pages")
	r.wantTold(owner("a"), owner("b"))
	eventually(t, func() bool { return spy.count() == 1 }, "%d watches for one object", spy.count())

	r.Want(owner("a"))
	change(t, ns, "pages", "1")
	r.wantTold(owner("b"))
	r.Want(owner("b"))
	eventually(t, func() bool { return spy.count() == 0 }, "the watch stays open")
	change(t, ns, "pages", "2")
	r.wantNoMore()
	if len(r.wanted) != 0 || len(r.watches) != 0 {
		t.Errorf("%d owners and %d watches are left", len(r.wanted), len(r.watches))
	}
}

func TestWantReplacesWhatTheOwnerWantedBefore(t *testing.T) {
	ns := newNamespace(t)
	spy := &watchSpy{}
	r := newRig(t, spy.wrap(config), logr.Discard())
	one, two := configMap(ns, "one"), configMap(ns, "two")
	r.Want(owner("a"), one, one)
	r.wantTold(owner("a"))
	r.Want(owner("a"), two)
	r.wantTold(owner("a"))
	eventually(t, func() bool { return spy.count() == 1 }, "%d watches", spy.count())
	create(t, ns, "one")
	create(t, ns, "two")
	r.wantTold(owner("a"))
	// Wanting the same object again changes nothing.
	r.Want(owner("a"), two)
	change(t, ns, "two", "1")
	r.wantTold(owner("a"))
	eventually(t, func() bool { return spy.count() == 1 }, "%d watches", spy.count())
	r.wantNoMore()
}

func TestWhatWasWantedBeforeTheStartIsWatched(t *testing.T) {
	ns := newNamespace(t)
	r := newIdleRig(t, config)
	r.Want(owner("a"), configMap(ns, "pages"))
	r.Want(owner("b"), configMap(ns, "dropped again"))
	r.Want(owner("b"))
	r.start(logr.Discard())
	r.wantTold(owner("a"))
	create(t, ns, "pages")
	r.wantTold(owner("a"))
	r.wantNoMore()
}

func TestWatchesEndWithTheContext(t *testing.T) {
	ns := newNamespace(t)
	spy := &watchSpy{}
	r := newRig(t, spy.wrap(config), logr.Discard())
	r.Want(owner("a"), configMap(ns, "one"))
	r.Want(owner("b"), configMap(ns, "two"))
	r.wantTold(owner("a"), owner("b"))
	eventually(t, func() bool { return spy.count() == 2 }, "%d watches", spy.count())
	r.stop()
	eventually(t, func() bool { return spy.count() == 0 }, "%d watches stay open", spy.count())
	r.Want(owner("c"), configMap(ns, "too late")) // this starts no watch that remains
	create(t, ns, "one")
	eventually(t, func() bool { return spy.count() == 0 }, "%d watches stay open", spy.count())
	r.wantNoMore()
}

func TestExpiredWatchIsStartedAgainAndNothingIsMissed(t *testing.T) {
	ns := newNamespace(t)
	spy := &watchSpy{}
	spy.expire.Store(true)
	logs := &logBuffer{}
	r := newRig(t, spy.wrap(config), logs.logger())
	r.Want(owner("a"), configMap(ns, "pages"))
	r.wantTold(owner("a"))
	eventually(t, func() bool { return spy.begun.Load() > 1 }, "no second watch")
	create(t, ns, "pages")
	r.wantTold(owner("a"))
	if text := logs.String(); text != "" {
		t.Errorf("logged:\n%s", text)
	}
}

func TestChangesWhileTheAPIServerIsAwayAreReportedAfterwards(t *testing.T) {
	ns := newNamespace(t)
	spy := &watchSpy{}
	r := newRig(t, spy.wrap(config), logr.Discard())
	create(t, ns, "gone")
	create(t, ns, "changed")
	for _, name := range []string{"gone", "changed", "new"} {
		r.Want(owner(name), configMap(ns, name))
	}
	eventually(t, func() bool { return spy.count() == 3 && len(r.told) >= 3 }, "%d watches, %d told", spy.count(), len(r.told))
	spy.cut(errors.New("the API server is unreachable"))
	remove(t, ns, "gone")
	change(t, ns, "changed", "1")
	create(t, ns, "new")
	for len(r.told) > 0 {
		<-r.told
	}
	spy.cut(nil)
	r.wantTold(owner("gone"), owner("changed"), owner("new"))
}

func TestForbiddenWatchIsLoggedOnceAndWorksWhenItIsAllowed(t *testing.T) {
	ns := newNamespace(t)
	logs := &logBuffer{}
	spy := &watchSpy{}
	nobody := rest.CopyConfig(config)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody-in-" + ns}
	r := newRig(t, spy.wrap(nobody), logs.logger())
	r.Want(owner("a"), configMap(ns, "pages"))
	eventually(t, func() bool { return strings.Contains(logs.String(), "allow the operator") }, "nothing is logged")
	asked := spy.asked.Load()
	eventually(t, func() bool { return spy.asked.Load() > asked+1 }, "it does not try again")
	r.wantNoMore()

	allow(t, ns, nobody.Impersonate.UserName)
	r.wantTold(owner("a"))
	create(t, ns, "pages")
	r.wantTold(owner("a"))
	if text := logs.String(); strings.Count(text, "\n") != 1 {
		t.Errorf("want one line, got:\n%s", text)
	}
}

// allow lets the user list and watch one ConfigMap.
func allow(t *testing.T, namespace, user string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "reader"}
	_, err := api.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: meta,
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"pages"}, Verbs: []string{"list", "watch"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnnotationsOfWhatIsWatchedDoNotStayInMemory(t *testing.T) {
	const objects, size = 40, 200 << 10
	ns := newNamespace(t)
	r := newRig(t, config, logr.Discard())
	name := func(i int) string { return fmt.Sprint("large-", i) }
	annotated := func(i int, letter string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: name(i), Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat(letter, size)},
		}}
	}
	waitForAll := func() {
		t.Helper()
		missing := map[types.NamespacedName]bool{}
		for i := range objects {
			missing[owner(name(i))] = true
		}
		eventually(t, func() bool {
			for len(r.told) > 0 {
				delete(missing, <-r.told)
			}
			return len(missing) == 0
		}, "%d are not enqueued", len(missing))
	}
	before := heap()
	for i := range objects { // these annotations arrive in a list
		if _, err := api.CoreV1().ConfigMaps(ns).Create(t.Context(), annotated(i, "a"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.Want(owner(name(i)), configMap(ns, name(i)))
	}
	waitForAll()
	for len(r.told) > 0 {
		<-r.told
	}
	for i := range objects { // these annotations arrive in a watch
		if _, err := api.CoreV1().ConfigMaps(ns).Update(t.Context(), annotated(i, "b"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	waitForAll()
	each := 0
	defer func() { t.Logf("%d KiB of heap and stack for each of %d watches", each>>10, objects) }()
	// On a busy machine, requests that are still in progress also need memory.
	eventually(t, func() bool {
		each = (heap() - before) / objects
		return each <= size/2
	}, "each watch keeps more than half the size of its annotation (%d bytes) in memory", size)
}

// heap returns the memory in use after a garbage collection, including stacks.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

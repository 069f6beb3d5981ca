package refs

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const patience = 30 * time.Second

func owner(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "owners", Name: name}
}

// rig is a running Watcher.
type rig struct {
	*Watcher
	t *testing.T
	// told receives the owners from every call of onChange.
	told chan []types.NamespacedName
	// stop ends the Watcher and waits for its end.
	stop func()
}

// newRig starts a Watcher that uses the configuration.
func newRig(t *testing.T, config *rest.Config, logger logr.Logger) *rig {
	t.Helper()
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, told: make(chan []types.NamespacedName, 10_000)}
	r.Watcher = New(client, func(owners []types.NamespacedName) { r.told <- owners })
	ctx, cancel := context.WithCancel(logf.IntoContext(context.Background(), logger))
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	r.stop = func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the watcher ended with %v", err)
			}
			ended <- nil
		case <-time.After(patience):
			t.Error("the watcher did not end with its context")
		}
	}
	t.Cleanup(r.stop)
	return r
}

// wantTold waits for a call of onChange, and checks the owners.
func (r *rig) wantTold(want ...types.NamespacedName) {
	r.t.Helper()
	select {
	case got := <-r.told:
		slices.SortFunc(got, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
		if !slices.Equal(got, want) {
			r.t.Errorf("told %v, want %v", got, want)
		}
	case <-time.After(patience):
		r.t.Fatalf("%v not told", want)
	}
}

// wantVersion waits until the Watcher returns the version of the object; nil means that
// the object is absent.
func (r *rig) wantVersion(ref Ref, object metav1.Object) {
	r.t.Helper()
	want := ""
	if object != nil {
		want = string(object.GetUID()) + "/" + object.GetResourceVersion()
	}
	eventually(r.t, func() bool {
		got, known := r.Version(ref)
		return known && got == want
	}, "%v does not reach version %q", ref, want)
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

func createSecret(t *testing.T, namespace, name string) *corev1.Secret {
	t.Helper()
	s, err := api.CoreV1().Secrets(namespace).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// change changes the content of the Secret.
func change(t *testing.T, s *corev1.Secret) *corev1.Secret {
	t.Helper()
	s = s.DeepCopy()
	s.StringData = map[string]string{"key": time.Now().String()}
	s, err := api.CoreV1().Secrets(s.Namespace).Update(t.Context(), s, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func deleteSecret(t *testing.T, s *corev1.Secret) {
	t.Helper()
	if err := api.CoreV1().Secrets(s.Namespace).Delete(t.Context(), s.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestOwnerIsToldOfTheFirstListingOfChangesOfDeletionAndOfReturn(t *testing.T) {
	ns := newNamespace(t)
	r := newRig(t, config, logr.Discard())
	ref := Ref{Kind: "Secret", Namespace: ns, Name: "keys"}
	if _, known := r.Version(ref); known {
		t.Error("known before anybody wants it")
	}
	r.Want(owner("a"), ref)
	r.wantTold(owner("a"))
	r.wantVersion(ref, nil)

	first := createSecret(t, ns, "keys")
	r.wantTold(owner("a"))
	r.wantVersion(ref, first)
	second := change(t, first)
	r.wantTold(owner("a"))
	r.wantVersion(ref, second)
	deleteSecret(t, second)
	r.wantTold(owner("a"))
	r.wantVersion(ref, nil)
	third := createSecret(t, ns, "keys")
	r.wantTold(owner("a"))
	r.wantVersion(ref, third)

	// Other objects must not be reported.
	createSecret(t, ns, "keys-of-others")
	deleteSecret(t, third)
	r.wantTold(owner("a"))
	r.wantVersion(ref, nil)
	if len(r.told) != 0 {
		t.Errorf("told %d times more", len(r.told))
	}
}

func TestSecretAndConfigMapOfTheSameNameAreTwoObjects(t *testing.T) {
	ns := newNamespace(t)
	r := newRig(t, config, logr.Discard())
	secret, configMap := Ref{"Secret", ns, "x"}, Ref{"ConfigMap", ns, "x"}
	r.Want(owner("a"), secret, configMap, Ref{"Pod", ns, "x"})
	r.wantTold(owner("a"))
	r.wantTold(owner("a"))
	cm, err := api.CoreV1().ConfigMaps(ns).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.wantTold(owner("a"))
	r.wantVersion(configMap, cm)
	r.wantVersion(secret, nil)
	if _, known := r.Version(Ref{"Pod", ns, "x"}); known {
		t.Error("an object of another kind is known")
	}
}

func TestOneWatchServesAllOwnersAndEndsWithTheLast(t *testing.T) {
	ns := newNamespace(t)
	spy := &watchSpy{}
	r := newRig(t, spy.wrap(config), logr.Discard())
	ref := Ref{Kind: "Secret", Namespace: ns, Name: "keys"}
	r.Want(owner("a"), ref)
	r.wantTold(owner("a"))
	r.Want(owner("b"), ref)
	if version, known := r.Version(ref); version != "" || !known {
		t.Errorf("version %q, known %v for the second owner", version, known)
	}
	s := createSecret(t, ns, "keys")
	r.wantTold(owner("a"), owner("b"))
	eventually(t, func() bool { return spy.open.Load() == 1 }, "%d watches for one object", spy.open.Load())

	r.Want(owner("a"))
	s = change(t, s)
	r.wantTold(owner("b"))
	r.Want(owner("b"))
	if _, known := r.Version(ref); known {
		t.Error("known, though nobody wants it")
	}
	eventually(t, func() bool { return spy.open.Load() == 0 }, "the watch stays open")
	s = change(t, s)

	r.Want(owner("c"), ref)
	r.wantTold(owner("c"))
	r.wantVersion(ref, s)
	if len(r.told) != 0 {
		t.Errorf("told %d times more", len(r.told))
	}
	if len(r.wanted) != 1 || len(r.watches) != 1 {
		t.Errorf("%d owners and %d watches left", len(r.wanted), len(r.watches))
	}
}

func TestWantReplacesWhatTheOwnerWantedBefore(t *testing.T) {
	ns := newNamespace(t)
	r := newRig(t, config, logr.Discard())
	one, two := Ref{"Secret", ns, "one"}, Ref{"Secret", ns, "two"}
	r.Want(owner("a"), one, one)
	r.wantTold(owner("a"))
	r.Want(owner("a"), two)
	r.wantTold(owner("a"))
	createSecret(t, ns, "one")
	s := createSecret(t, ns, "two")
	r.wantTold(owner("a"))
	r.wantVersion(two, s)
	if _, known := r.Version(one); known {
		t.Error("the first is still watched")
	}
	if len(r.told) != 0 {
		t.Errorf("told %d times more", len(r.told))
	}
}

func TestWhatWasWantedBeforeTheStartIsWatched(t *testing.T) {
	ns := newNamespace(t)
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan []types.NamespacedName, 10)
	w := New(client, func(owners []types.NamespacedName) { told <- owners })
	ref := Ref{Kind: "Secret", Namespace: ns, Name: "keys"}
	w.Want(owner("a"), ref)
	w.Want(owner("b"), Ref{Kind: "Secret", Namespace: ns, Name: "dropped again"})
	w.Want(owner("b"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	select {
	case got := <-told:
		if !slices.Equal(got, []types.NamespacedName{owner("a")}) {
			t.Errorf("told %v", got)
		}
	case <-time.After(patience):
		t.Error("nobody told")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.Want(owner("c"), Ref{Kind: "Secret", Namespace: ns, Name: "too late"}) // must not start a watch
}

func TestWatcherIsForTheLeaderOnly(t *testing.T) {
	if !(&Watcher{}).NeedLeaderElection() {
		t.Error("every manager would watch")
	}
}

package metrics

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

const patience = 15 * time.Second

var (
	scheme = runtime.NewScheme()
	config *rest.Config
	api    client.Client
)

// The control plane comes from envtest: KUBEBUILDER_ASSETS names its
// binaries, or USE_EXISTING_CLUSTER=true and KUBECONFIG name a cluster.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	logf.SetLogger(logr.Discard())
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	var err error
	if config, err = env.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			fmt.Fprintln(os.Stderr, "creating the scheme:", err)
			return 1
		}
	}
	if api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		fmt.Fprintln(os.Stderr, "creating a client:", err)
		return 1
	}
	return m.Run()
}

// scrape returns the response of the metrics endpoint.
func scrape(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// ours returns the lines of the metrics with the given prefix.
func ours(text, prefix string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// useAll gives every metric a series.
func useAll(store string) {
	ProbeDuration.WithLabelValues(store).Observe(0.002)
	Probes.WithLabelValues(store, "ProbeSucceeded").Inc()
	StoreChecks.WithLabelValues(store, "ProbeSucceeded").Inc()
	DueLag.Observe(0.1)
	DriftRepaired.WithLabelValues("tags").Inc()
	Notifications.WithLabelValues("accepted").Inc()
	StatusWrites.WithLabelValues("StorageBucket").Inc()
	StoreRequested("HeadBucket", 200)
	LimiterWaited(time.Second)
	RegisterBuildInfo()
}

func TestNamesAndHelpAreAsPrometheusWantsThem(t *testing.T) {
	RegisterBuckets(api)
	useAll("lint/me")
	names := []string{
		"storagebucket_probe_duration_seconds", "storagebucket_probes_total", "storagebucket_due_lag_seconds",
		"storagebucket_drift_repaired_total", "storagebucket_store_checks_total",
		"storagebucket_notifications_total", "storagebucket_status_writes_total",
		"storagebucket_store_requests_total", "storagebucket_limiter_wait_seconds_total", "storagebucket_build_info",
		"storagebucket_buckets", "storagebucket_stores",
	}
	problems, err := testutil.GatherAndLint(metrics.Registry, names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	text := scrape(t)
	for _, name := range names {
		if !strings.Contains(text, "# HELP "+name+" ") {
			t.Errorf("%s is not on the endpoint", name)
		}
	}
}

func TestSeriesOfAStoreThatIsGoneAreDroppedAndNoOthers(t *testing.T) {
	gone, kept := StoreName("team-a", "gone"), StoreName("team-a", "kept")
	Probes.Reset() // drop the counts of earlier runs of this test
	StoreChecks.Reset()
	useAll(gone)
	useAll(kept)
	useAll(InlineStore)
	Probes.WithLabelValues(gone, "Timeout").Inc()
	ForgetStore(gone)
	text := scrape(t)
	if found := strings.Count(text, `store="team-a/gone"`); found != 0 {
		t.Errorf("%d lines left", found)
	}
	for _, store := range []string{kept, InlineStore} {
		for _, name := range []string{"probes_total", "store_checks_total"} {
			if want := fmt.Sprintf("storagebucket_%s{reason=\"ProbeSucceeded\",store=%q} 1\n", name, store); !strings.Contains(text, want) {
				t.Errorf("no %s", want)
			}
		}
	}
}

// newCache returns a synced cache of the objects in one namespace.
func newCache(t *testing.T, namespace string) cache.Cache {
	t.Helper()
	c, err := cache.New(config, cache.Options{
		Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for _, object := range []client.Object{&storagev1.StorageBucket{}, &storagev1.ObjectStore{}} {
		if _, err := c.GetInformer(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "metrics-"}}
	if err := api.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, object := range []client.Object{&storagev1.StorageBucket{}, &storagev1.ObjectStore{}} {
			if err := api.DeleteAllOf(ctx, object, client.InNamespace(ns.Name)); err != nil {
				t.Error(err)
			}
		}
		if err := api.Delete(ctx, ns); err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

// createBucket creates a StorageBucket with the given conditions, each written as "Type
// Status".
func createBucket(t *testing.T, namespace, name string, conditions ...string) {
	t.Helper()
	b := &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       storagev1.StorageBucketSpec{StoreRef: &storagev1.ObjectStoreReference{Name: "store"}},
	}
	if err := api.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.Status.Conditions = conditionsOf(conditions)
	if err := api.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func conditionsOf(list []string) []metav1.Condition {
	var out []metav1.Condition
	for _, text := range list {
		name, status, _ := strings.Cut(text, " ")
		out = append(out, metav1.Condition{
			Type: name, Status: metav1.ConditionStatus(status), Reason: "Test", LastTransitionTime: metav1.Now(),
		})
	}
	return out
}

// wantEventually waits until the scrape has exactly these lines.
func wantEventually(t *testing.T, prefix, want string) {
	t.Helper()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer tick.Stop()
	got := ""
	for {
		if got = ours(scrape(t), prefix); got == want {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("got\n%swant\n%s", got, want)
		}
	}
}

func TestObjectsAreCountedFromTheCacheAtEachScrape(t *testing.T) {
	ns := newNamespace(t)
	RegisterBuckets(newCache(t, ns))
	wantEventually(t, "storagebucket_buckets{", `storagebucket_buckets{condition="Healthy",status="False"} 0
storagebucket_buckets{condition="Healthy",status="True"} 0
storagebucket_buckets{condition="Healthy",status="Unknown"} 0
storagebucket_buckets{condition="Ready",status="False"} 0
storagebucket_buckets{condition="Ready",status="True"} 0
storagebucket_buckets{condition="Ready",status="Unknown"} 0
storagebucket_buckets{condition="Synced",status="False"} 0
storagebucket_buckets{condition="Synced",status="True"} 0
storagebucket_buckets{condition="Synced",status="Unknown"} 0
`)
	createBucket(t, ns, "good", "Ready True", "Synced True", "Healthy True")
	createBucket(t, ns, "bad", "Ready False", "Synced True", "Healthy False")
	createBucket(t, ns, "unsure", "Ready False", "Synced True", "Healthy Unknown")
	createBucket(t, ns, "new") // no condition yet
	wantEventually(t, "storagebucket_buckets{", `storagebucket_buckets{condition="Healthy",status="False"} 1
storagebucket_buckets{condition="Healthy",status="True"} 1
storagebucket_buckets{condition="Healthy",status="Unknown"} 2
storagebucket_buckets{condition="Ready",status="False"} 2
storagebucket_buckets{condition="Ready",status="True"} 1
storagebucket_buckets{condition="Ready",status="Unknown"} 1
storagebucket_buckets{condition="Synced",status="False"} 0
storagebucket_buckets{condition="Synced",status="True"} 3
storagebucket_buckets{condition="Synced",status="Unknown"} 1
`)
	store := &storagev1.ObjectStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "store"},
		Spec: storagev1.ObjectStoreSpec{
			Endpoint:    "https://s3.example.com",
			Credentials: storagev1.Credentials{SecretRef: &storagev1.SecretReference{Name: "keys"}},
		},
	}
	if err := api.Create(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	wantEventually(t, "storagebucket_stores{", `storagebucket_stores{condition="Healthy",status="False"} 0
storagebucket_stores{condition="Healthy",status="True"} 0
storagebucket_stores{condition="Healthy",status="Unknown"} 1
storagebucket_stores{condition="Ready",status="False"} 0
storagebucket_stores{condition="Ready",status="True"} 0
storagebucket_stores{condition="Ready",status="Unknown"} 1
`)
	if err := api.Delete(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	wantEventually(t, `storagebucket_stores{condition="Ready",status="Unknown"}`,
		"storagebucket_stores{condition=\"Ready\",status=\"Unknown\"} 0\n")
}

func TestScrapeBeforeTheCacheStartedHasTheOtherMetrics(t *testing.T) {
	c, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	RegisterBuckets(c)
	useAll("early/store")
	text := scrape(t)
	if ours(text, "storagebucket_buckets{") != "" {
		t.Error("buckets counted without a cache")
	}
	if !strings.Contains(text, `store="early/store"`) {
		t.Error("the other metrics are missing")
	}
}

func TestCountsTreatAMissingConditionAsUnknown(t *testing.T) {
	c := newCounts(storeConditions)
	c.add(nil)
	c.add(conditionsOf([]string{"Ready True"}))
	if got := fmt.Sprint(c); got != "map[Healthy:map[Unknown:2] Ready:map[True:1 Unknown:1]]" {
		t.Error(got)
	}
}

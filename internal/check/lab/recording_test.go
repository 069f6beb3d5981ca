package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// BenchmarkReconciles measures the cost of recording. A controller with a watch and a
// queue makes a get, an update and a status update in each reconcile. The controller
// alternates between two paths to a plane: direct, and through a recording proxy. One
// operation is one reconcile on each path. As in a check, plane and proxy are one process
// and the controller is another. The bodies of requests and answers are JSON, as for custom
// resources.
func BenchmarkReconciles(b *testing.B) {
	if os.Getenv(benchmarkedWays) != "" {
		asController(b)
		return
	}
	profile, err := controllers.Lookup("gc")
	if err != nil {
		b.Fatal(err)
	}
	plane, err := controlplane.Start(b.Context(), controlplane.Options{Profile: profile})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = plane.Stop() }()
	direct, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		b.Fatal(err)
	}
	upstream := rest.CopyConfig(direct)
	if upstream.Transport, err = plane.InProcess(direct); err != nil {
		b.Fatal(err)
	}
	proxy, err := apiproxy.Start(b.Context(), apiproxy.Config{Upstream: upstream, Log: trace.NewLog(time.Now()), Decider: &instance.Instance{}})
	if err != nil {
		b.Fatal(err)
	}
	defer proxy.Stop()
	kubeconfig, err := proxy.Kubeconfig()
	if err != nil {
		b.Fatal(err)
	}
	proxied := filepath.Join(b.TempDir(), "kubeconfig")
	if err := os.WriteFile(proxied, kubeconfig, 0o600); err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{1, 4} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) { reconciles(b, workers, plane.Kubeconfig(), proxied) })
	}
}

const (
	// benchmarkedWays is the environment variable that passes both kubeconfigs to the
	// controller process, separated by a comma.
	benchmarkedWays = "KOBOSHI_BENCHMARKED_WAYS"
	// ingresses is the number of Ingress objects, which is large enough that no worker
	// waits.
	ingresses = 20
	// reconcileTurn is the number of reconciles on one path before the switch to the other
	// path.
	reconcileTurn = 200
)

// reconciles runs the controller in a separate process and reports its metrics.
func reconciles(b *testing.B, workers int, ways ...string) {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), program, "-test.run=^$", "-test.bench=^BenchmarkReconciles$", fmt.Sprintf("-test.benchtime=%dx", b.N))
	cmd.Env = append(os.Environ(), benchmarkedWays+"="+strings.Join(ways, ","), fmt.Sprint(benchmarkedWorkers, "=", workers))
	b.ResetTimer()
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	var line []string
	for text := range strings.Lines(string(out)) {
		if strings.HasPrefix(text, "BenchmarkReconciles") {
			line = strings.Fields(text)
		}
	}
	for i := 2; i+1 < len(line); i += 2 {
		value, err := strconv.ParseFloat(line[i], 64)
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		b.ReportMetric(value, line[i+1])
	}
	b.ReportMetric(0, "ns/op")
}

// benchmarkedWorkers is the environment variable for the controller's number of workers.
const benchmarkedWorkers = "KOBOSHI_BENCHMARKED_WORKERS"

// asController runs the controller on both paths in turn.
func asController(b *testing.B) {
	workers, err := strconv.Atoi(os.Getenv(benchmarkedWorkers))
	if err != nil {
		b.Fatal(err)
	}
	var loops []*loop
	for _, way := range strings.Split(os.Getenv(benchmarkedWays), ",") {
		loops = append(loops, newLoop(b, way, workers))
	}
	// The benchmark uses Ingresses, because an Ingress has a status and no other component
	// changes it.
	makeIngresses(b, loops[0].client)
	for _, l := range loops {
		l.run(b, 2*ingresses)
		l.took, l.done, l.requests = 0, 0, nil
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += reconcileTurn {
		for i := range loops {
			l := loops[(i+done/reconcileTurn)%2] // alternate, because the first path has the warmer caches
			l.run(b, min(reconcileTurn, b.N-done))
		}
	}
	b.StopTimer()
	direct, proxied := loops[0], loops[1]
	b.ReportMetric(direct.rate(), "direct-rec/s")
	b.ReportMetric(proxied.rate(), "proxied-rec/s")
	b.ReportMetric(100*(1-proxied.rate()/direct.rate()), "%fewer-rec/s")
	b.ReportMetric(direct.p99(), "direct-p99-ms")
	b.ReportMetric(proxied.p99(), "proxied-p99-ms")
	b.ReportMetric(100*(proxied.p99()/direct.p99()-1), "%more-p99")
	b.ReportMetric(0, "ns/op")
}

func makeIngresses(b *testing.B, client *kubernetes.Clientset) {
	for i := range ingresses {
		_, err := client.NetworkingV1().Ingresses("default").Create(b.Context(), &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("i", i)},
			Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
			}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			b.Fatal(err)
		}
	}
}

// loop is a controller that never finishes: its own writes wake it again.
type loop struct {
	client  *kubernetes.Clientset
	workers int
	took    time.Duration
	done    int

	mu       sync.Mutex
	requests []time.Duration
	left     int
	enough   context.CancelFunc
}

func newLoop(b *testing.B, kubeconfig string, workers int) *loop {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	c.QPS = -1
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		b.Fatal(err)
	}
	return &loop{client: client, workers: workers}
}

// run starts a controller for the given number of reconciles. The start of the controller
// is not timed.
func (l *loop) run(b *testing.B, count int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	l.left, l.enough = count, cancel
	queue := workqueue.NewTyped[string]()
	factory := informers.NewSharedInformerFactoryWithOptions(l.client, 0, informers.WithNamespace("default"))
	informer := factory.Networking().V1().Ingresses().Informer()
	add := func(obj any) { queue.Add(obj.(*networkingv1.Ingress).Name) }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) },
	}); err != nil {
		b.Fatal(err)
	}
	factory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)

	began := time.Now()
	var all sync.WaitGroup
	for range l.workers {
		all.Go(func() { l.work(ctx, b, queue) })
	}
	<-ctx.Done()
	l.took += time.Since(began)
	l.done += count
	queue.ShutDown()
	all.Wait()
	factory.Shutdown()
}

func (l *loop) work(ctx context.Context, b *testing.B, queue workqueue.TypedInterface[string]) {
	for ctx.Err() == nil {
		name, down := queue.Get()
		if down {
			return
		}
		// Use b.Context() instead of ctx, so that the last request can finish.
		if err := l.reconcile(b.Context(), name); err != nil {
			b.Error(err)
			l.enough()
		}
		queue.Done(name)
	}
}

// reconcile writes a new value each time. reconcile reads from the server instead of the cache, so
// that it never gets a conflict.
func (l *loop) reconcile(ctx context.Context, name string) error {
	ingresses := l.client.NetworkingV1().Ingresses("default")
	times := []time.Time{time.Now()}
	object, err := ingresses.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	times = append(times, time.Now())
	seen, _ := strconv.Atoi(object.Annotations["seen"])
	object.Annotations = map[string]string{"seen": strconv.Itoa(seen + 1)}
	if object, err = ingresses.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	times = append(times, time.Now())
	object.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{Hostname: fmt.Sprintf("h%d.example", seen)}}
	if _, err = ingresses.UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	l.count(append(times, time.Now()))
	return nil
}

// count records the duration of each request, and ends the run after the last reconcile.
func (l *loop) count(times []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left <= 0 {
		return
	}
	for i := range len(times) - 1 {
		l.requests = append(l.requests, times[i+1].Sub(times[i]))
	}
	if l.left--; l.left == 0 {
		l.enough()
	}
}

func (l *loop) rate() float64 { return float64(l.done) / l.took.Seconds() }

// p99 returns the 99th percentile in milliseconds.
func (l *loop) p99() float64 {
	slices.Sort(l.requests)
	return l.requests[len(l.requests)*99/100].Seconds() * 1000
}

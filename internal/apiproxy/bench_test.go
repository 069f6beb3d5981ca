package apiproxy

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// BenchmarkGetAndUpdate sends the same gets and updates directly to a server and through
// a recording proxy, alternately, and reports both results. One operation consists of a
// get and an update on each of the two paths. The server is about as fast as an API
// server with its store in memory.
func BenchmarkGetAndUpdate(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { benchmark(b, clients) })
	}
}

func benchmark(b *testing.B, clients int) {
	a := newAPI(b)
	a.work = func([]byte) { work(400 * time.Microsecond) }
	for i := range clients {
		a.put(fmt.Sprint("n", i), "1")
	}
	compare(b, a.config(), clients)
}

// BenchmarkPlane makes the same comparison with a real API server, run by the program
// that the environment variable KOBOSHI names.
func BenchmarkPlane(b *testing.B) {
	server := plane(b)
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			maps := clientset(b, server, false).CoreV1().ConfigMaps("default")
			for i := range clients {
				_, err := maps.Create(b.Context(), configMap(fmt.Sprint("n", i), "1"), metav1.CreateOptions{})
				if err != nil && !apierrors.IsAlreadyExists(err) {
					b.Fatal(err)
				}
			}
			compare(b, server, clients)
		})
	}
}

func compare(b *testing.B, server *rest.Config, clients int) {
	p, err := Start(b.Context(), Config{
		Upstream: server,
		Log:      trace.NewLog(time.Now()),
		Decider:  deciderFunc(func(*trace.Call) Action { return Action{} }),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Stop()
	through := clientConfig(b, p)
	straight := rest.CopyConfig(server)
	straight.QPS = -1
	ways := []*way{{config: straight}, {config: through}}
	for _, w := range ways {
		w.client = clientset(b, w.config, true)
		w.drive(b, clients, 10)
		w.took, w.single = 0, nil
	}
	b.ResetTimer()
	const turn = 50
	for done := 0; done < b.N; done += turn {
		for i := range ways {
			w := ways[(i+done/turn)%2] // alternating, because the order of the two affects the caches
			w.drive(b, clients, min(turn, b.N-done))
		}
	}
	b.StopTimer()
	requests := float64(2 * b.N)
	direct, proxied := requests/ways[0].took.Seconds(), requests/ways[1].took.Seconds()
	b.ReportMetric(direct, "direct-req/s")
	b.ReportMetric(proxied, "proxied-req/s")
	b.ReportMetric(100*(1-proxied/direct), "%fewer-req/s")
	b.ReportMetric(100*(ways[1].p99()/ways[0].p99()-1), "%more-p99")
	b.ReportMetric(0, "ns/op")
}

// way is a path to the server, either direct or through the proxy.
type way struct {
	config *rest.Config
	client *kubernetes.Clientset
	took   time.Duration

	mu     sync.Mutex
	single []time.Duration
}

func (w *way) drive(b *testing.B, clients, rounds int) {
	began := time.Now()
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			maps := w.client.CoreV1().ConfigMaps("default")
			var single []time.Duration
			for range (rounds + clients - 1 - c) / clients {
				at := time.Now()
				obj, err := maps.Get(b.Context(), fmt.Sprint("n", c), metav1.GetOptions{})
				got := time.Now()
				if err == nil {
					obj.Data["v"] = at.String()
					_, err = maps.Update(b.Context(), obj, metav1.UpdateOptions{})
				}
				if err != nil {
					b.Error(err)
					return
				}
				single = append(single, got.Sub(at), time.Since(got))
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.single = append(w.single, single...)
		})
	}
	all.Wait()
	w.took += time.Since(began)
}

func (w *way) p99() float64 {
	slices.Sort(w.single)
	return w.single[len(w.single)*99/100].Seconds()
}

// work keeps a processor busy with the kind of work that API servers do.
func work(d time.Duration) {
	until := time.Now().Add(d)
	for time.Now().Before(until) {
		var v map[string]any
		_ = json.Unmarshal([]byte(`{"kind":"ConfigMap","metadata":{"name":"a","labels":{"a":"b"}},"data":{"a":"b"}}`), &v)
		runtime.KeepAlive(v)
	}
}

func BenchmarkWatchEvents(b *testing.B) {
	a := newAPI(b)
	_, c := through(b, a, func(c *Config) { c.Log = trace.NewLog(time.Now()) })
	w, err := clientset(b, c, false).CoreV1().ConfigMaps("default").Watch(b.Context(), metav1.ListOptions{ResourceVersion: "100"})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	for b.Loop() {
		a.put("one", "1")
		<-w.ResultChan()
		a.mu.Lock()
		a.history = nil
		a.mu.Unlock()
	}
}

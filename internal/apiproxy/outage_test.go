package apiproxy

import (
	"runtime"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/freeport"
)

func TestOutageRefusesConnectionsUntilItIsOver(t *testing.T) {
	bothProtocols(t, func(t *testing.T, wrap func(*rest.Config) *rest.Config) {
		a := newAPI(t)
		a.put("one", "1")
		p, c := through(t, a, nil)
		maps := clientset(t, wrap(c), false).CoreV1().ConfigMaps("default")
		if _, err := maps.Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
			t.Fatal(err) // the client now has a connection
		}
		p.Disconnect()
		p.Disconnect() // has no effect
		before := len(a.requests())
		if _, err := maps.Get(t.Context(), "one", metav1.GetOptions{}); !net.IsConnectionRefused(err) {
			t.Errorf("Get = %v, want a refused connection", err)
		}
		if after := len(a.requests()); after != before {
			t.Errorf("the server got %d requests", after-before)
		}
		if l, err := freeport.Listen(p.port); err == nil && runtime.GOOS == "linux" {
			t.Errorf("another program has taken the port: %s", l.Addr())
		}
		if err := p.Reconnect(); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
			t.Errorf("after the outage: %v", err)
		}
	})
}

func TestWatchThatIsResumedAfterAnOutageShowsWhatHasHappened(t *testing.T) {
	bothEncodings(t, func(t *testing.T, asProtobuf bool) {
		a := newAPI(t)
		p, c := through(t, a, nil)
		resume := metav1.ListOptions{ResourceVersion: strconv.Itoa(a.put("one", "1"))}
		maps := clientset(t, c, asProtobuf).CoreV1().ConfigMaps("default")
		broken, err := maps.Watch(t.Context(), resume)
		if err != nil {
			t.Fatal(err)
		}

		p.Disconnect()
		for range broken.ResultChan() { // ends when the connection breaks
		}
		until(t, p, func(a Activity) bool { return len(a.Streams) == 0 && a.InFlight == 0 })
		a.put("one", "2")
		a.put("one", "3")
		if err := p.Reconnect(); err != nil {
			t.Fatal(err)
		}
		w, err := maps.Watch(t.Context(), resume)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for _, want := range []string{"2", "3"} {
			e := <-w.ResultChan()
			if m, ok := e.Object.(*corev1.ConfigMap); !ok || e.Type != watch.Modified || m.Data["v"] != want {
				t.Errorf("the watch shows %s %v, want MODIFIED with %s", e.Type, e.Object, want)
			}
		}
	})
}

func TestOutageOfAProxyThatHasStoppedDoesNotEnd(t *testing.T) {
	p, _ := through(t, newAPI(t), nil)
	p.Disconnect()
	p.Stop()
	if err := p.Reconnect(); err != nil {
		t.Errorf("Reconnect = %v", err)
	}
	if _, err := clientset(t, clientConfig(t, p), false).CoreV1().ConfigMaps("default").Get(t.Context(), "one", metav1.GetOptions{}); !net.IsConnectionRefused(err) {
		t.Errorf("Get = %v, want a refused connection", err)
	}
	l, err := freeport.Listen(p.port)
	if err != nil {
		t.Fatalf("the port of the proxy is not free: %v", err)
	}
	_ = l.Close()
}

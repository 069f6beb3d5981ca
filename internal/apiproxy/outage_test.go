package apiproxy

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/trace"
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
		if err := p.Reconnect(); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
			t.Errorf("after the outage: %v", err)
		}
	})
}

func TestWatchDoesNotSeeWhatHappenedDuringAnOutage(t *testing.T) {
	bothEncodings(t, func(t *testing.T, asProtobuf bool) {
		a := newAPI(t)
		a.put("one", "1")
		log := trace.NewLog(time.Now())
		p, c := through(t, a, func(c *Config) { c.Log = log })
		told, _ := inform(t, c, asProtobuf)
		hear(t, told, "add one=1")
		until(t, p, func(a Activity) bool { return len(a.Streams) == 1 && !a.Streams[0].Initial })

		p.Disconnect()
		until(t, p, func(a Activity) bool { return len(a.Streams) == 0 && a.InFlight == 0 })
		a.put("one", "2")
		a.put("two", "1")
		a.put("one", "3")
		if err := p.Reconnect(); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for range 2 {
			select {
			case what := <-told:
				got[what] = true
			case <-time.After(30 * time.Second):
				t.Fatalf("the informer reported only %v", got)
			}
		}
		if !got["update one=3"] || !got["add two=1"] {
			t.Errorf("the informer reported %v, want only the last states", got)
		}
		for _, e := range log.Entries() {
			if e.Watch != nil && e.Watch.Type == "MODIFIED" {
				t.Errorf("a watch has shown version %s", e.Watch.ResourceVersion)
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
}

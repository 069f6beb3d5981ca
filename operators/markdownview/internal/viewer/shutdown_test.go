package viewer_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/viewer"
)

// raw is a client that never retries, so the test notices every lost request.
type raw struct {
	connection net.Conn
	reader     *bufio.Reader
}

func dial(address string) (*raw, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &raw{connection, bufio.NewReader(connection)}, nil
}

// ask sends a request and reads the response. closed reports whether the server will close the
// connection.
func (c *raw) ask(path string) (status int, closed bool, err error) {
	if _, err := fmt.Fprintf(c.connection, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		return 0, true, err
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, true, err
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Close, err
}

// A load balancer still uses its open connections for a short time after a viewer becomes
// unready.
func TestNoRequestFailsWhileTheViewerStops(t *testing.T) {
	r := start(t, viewer.Options{Content: content(t, version(1)), Drain: 3 * time.Second})
	ready(t, r)
	address := strings.TrimPrefix(r.url, "http://")
	var unready atomic.Bool
	var asked atomic.Int64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			var c *raw
			for !unready.Load() {
				if c == nil {
					var err error
					if c, err = dial(address); err != nil {
						t.Errorf("connecting before the viewer was seen to stop: %v", err)
						return
					}
				}
				status, closed, err := c.ask("/sub/a.html")
				if err != nil || status != http.StatusOK {
					t.Errorf("status %d, error %v", status, err)
					return
				}
				asked.Add(1)
				if closed {
					_ = c.connection.Close()
					c = nil
				}
			}
		})
	}
	until(t, "traffic", func() bool { return asked.Load() > 100 })
	before := asked.Load()
	r.stop()
	until(t, "the viewer to be not ready", func() bool {
		answer, text := get(t, r.url+"/readyz")
		return answer.StatusCode == http.StatusServiceUnavailable && strings.HasPrefix(text, "stopping")
	})
	until(t, "requests while it stops", func() bool { return asked.Load() > before+50 })
	unready.Store(true)
	clients.Wait()
	if err := <-r.done; err != nil {
		t.Errorf("it stopped with %v", err)
	}
}

func TestAnAnswerThatIsBeingReadIsFinishedWhileTheViewerStops(t *testing.T) {
	const size = 24 << 20 // more than the buffers of a connection hold
	r := start(t, viewer.Options{Content: content(t, map[string]string{"README.md": "# x", "big.bin": strings.Repeat("x", size)})})
	ready(t, r)
	c, err := dial(strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.connection.Close() }()
	if _, err := fmt.Fprint(c.connection, "GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	until(t, "the listener to close", func() bool {
		probe, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err == nil {
			_ = probe.Close()
		}
		return err != nil
	})
	if n, err := io.Copy(io.Discard, answer.Body); err != nil || n != size {
		t.Errorf("%d of %d bytes came, error %v", n, size, err)
	}
	if err := <-r.done; err != nil {
		t.Errorf("it stopped with %v", err)
	}
}

func TestTheGraceBoundsTheStop(t *testing.T) {
	r := start(t, viewer.Options{
		Content:       content(t, map[string]string{"README.md": "# x", "big.bin": strings.Repeat("x", 24<<20)}),
		ShutdownGrace: 300 * time.Millisecond,
	})
	ready(t, r)
	c, err := dial(strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.connection.Close() }()
	// This client never reads the complete response.
	if _, err := fmt.Fprint(c.connection, "GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.reader.Peek(1); err != nil {
		t.Fatal(err)
	}
	r.stop()
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("it stopped with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a reader that never reads keeps the viewer from stopping")
	}
	if !strings.Contains(r.log.String(), "cut off") {
		t.Errorf("the log does not say that a request was cut off: %s", r.log)
	}
}

func TestAnIdleViewerStopsAtOnce(t *testing.T) {
	var took time.Duration
	for range 3 { // a busy machine may delay one stop
		r := start(t, viewer.Options{Content: content(t, version(1))})
		ready(t, r)
		started := time.Now()
		r.stop()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		if took = time.Since(started); took <= 1500*time.Millisecond {
			return
		}
	}
	t.Errorf("it took %v with nothing to wait for", took)
}

// A proxy that has not noticed the shutdown still opens connections. A reader that keeps a
// connection must not keep getting old pages.
func TestADrainingViewerTakesConnectionsAndKeepsNone(t *testing.T) {
	const (
		drain = 3 * time.Second
		// After draining, the viewer stops once no connection has been open for this time.
		moment = 200 * time.Millisecond
	)
	r := start(t, viewer.Options{Content: content(t, version(1)), Drain: drain})
	ready(t, r)
	address := strings.TrimPrefix(r.url, "http://")
	kept, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.connection.Close() }()
	if _, closed, err := kept.ask("/sub/a.html"); err != nil || closed {
		t.Fatalf("closed %t, error %v", closed, err)
	}
	started := time.Now()
	r.stop()
	until(t, "the viewer to be not ready", func() bool {
		answer, _ := get(t, r.url+"/readyz")
		return answer.StatusCode == http.StatusServiceUnavailable
	})
	if status, closed, err := kept.ask("/sub/a.html"); status != http.StatusOK || !closed || err != nil {
		t.Errorf("on a connection that was kept: status %d, closed %t, error %v", status, closed, err)
	}
	fresh, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fresh.connection.Close() }()
	if status, closed, err := fresh.ask("/sub/a.html"); status != http.StatusOK || !closed || err != nil {
		t.Errorf("on a new connection: status %d, closed %t, error %v", status, closed, err)
	}
	if err := <-r.done; err != nil {
		t.Error(err)
	}
	if took := time.Since(started); took < drain+moment {
		t.Errorf("it accepted connections for %v, not %v", took, drain+moment)
	}
}

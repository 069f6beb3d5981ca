package apiproxy

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

type deciderFunc func(*trace.Call) Action

func (f deciderFunc) Decide(c *trace.Call) Action { return f(c) }

// onWrite returns a decider that applies an action to the first write with a
// verb.
func onWrite(verb string, a Action) Decider {
	var done atomic.Bool
	return deciderFunc(func(c *trace.Call) Action {
		if c.Verb == verb && done.CompareAndSwap(false, true) {
			return a
		}
		return Action{}
	})
}

// http1 makes a client speak HTTP/1.1.
func http1(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.NextProtos = []string{"http/1.1"}
	return c
}

// bothProtocols runs a test once over HTTP/2 and once over HTTP/1.1.
func bothProtocols(t *testing.T, f func(t *testing.T, wrap func(*rest.Config) *rest.Config)) {
	t.Run("HTTP2", func(t *testing.T) { f(t, func(c *rest.Config) *rest.Config { return c }) })
	t.Run("HTTP1", func(t *testing.T) { f(t, http1) })
}

func TestDroppedAnswerSurfacesThoughTheWriteTookPlace(t *testing.T) {
	bothProtocols(t, func(t *testing.T, wrap func(*rest.Config) *rest.Config) {
		a := newAPI(t)
		log := trace.NewLog(time.Now())
		_, c := through(t, a, func(c *Config) { c.Log, c.Decider = log, onWrite("create", Action{Drop: true}) })
		maps := clientset(t, wrap(c), false).CoreV1().ConfigMaps("default")

		_, err := maps.Create(t.Context(), configMap("one", "1"), metav1.CreateOptions{})
		if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			t.Fatalf("Create = %v, want a connection error", err)
		}
		if got, err := maps.Get(t.Context(), "one", metav1.GetOptions{}); err != nil || got.Data["v"] != "1" {
			t.Errorf("the write did not take place: %v, %v", got, err)
		}
		if posts := count(a.requests(), "POST"); posts != 1 {
			t.Errorf("the server got %d POSTs, want 1", posts)
		}
		call := log.Entries()[0].Call
		if !call.Lost || call.Code != 201 || call.Target.Name != "one" || call.ResourceVersion != "101" {
			t.Errorf("recorded %+v, want a lost 201 for object one at version 101", call)
		}
	})
}

func TestSwallowedRequestNeverGetsToTheServer(t *testing.T) {
	bothProtocols(t, func(t *testing.T, wrap func(*rest.Config) *rest.Config) {
		a := newAPI(t)
		var before atomic.Bool
		_, c := through(t, a, func(c *Config) {
			c.Decider = onWrite("create", Action{Swallow: true, Before: func(context.Context) error { before.Store(true); return nil }})
		})
		_, err := clientset(t, wrap(c), false).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("one", "1"), metav1.CreateOptions{})
		if err == nil || count(a.requests(), "POST") != 0 {
			t.Errorf("Create = %v, and the server got %v; want an error and no request", err, a.requests())
		}
		if !before.Load() {
			t.Error("Before was not called")
		}
	})
}

func TestHangingRequestIsNotInFlightAndNeverGetsToTheServer(t *testing.T) {
	bothProtocols(t, func(t *testing.T, wrap func(*rest.Config) *rest.Config) {
		for _, gives := range []bool{true, false} {
			a := newAPI(t)
			over := make(chan struct{})
			log := trace.NewLog(time.Now())
			p, c := through(t, a, func(c *Config) { c.Log, c.Decider = log, onWrite("create", Action{Hang: over}) })
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			done := make(chan error, 1)
			go func() {
				_, err := clientset(t, wrap(c), false).CoreV1().ConfigMaps("default").Create(ctx, configMap("one", "1"), metav1.CreateOptions{})
				done <- err
			}()
			until(t, p, func(a Activity) bool { return a.Writes == 1 && a.InFlight == 0 })
			if len(done) != 0 {
				t.Error("the request has already ended")
			}
			if gives {
				giveUp()
			} else {
				close(over)
			}
			if err := <-done; err == nil {
				t.Error("Create succeeded")
			}
			until(t, p, func(Activity) bool { return len(log.Entries()) == 1 })
			call := log.Entries()[0].Call
			if !call.Injected || call.Code != 0 || strings.Contains(call.Message, "gave up") != gives || count(a.requests(), "POST") != 0 {
				t.Errorf("recorded %+v; the server got %v", call, a.requests())
			}
		}
	})
}

func TestWriteBeforeMakesAGenuineConflict(t *testing.T) {
	a := newAPI(t)
	a.put("one", "1")
	_, c := through(t, a, func(c *Config) {
		c.Decider = onWrite("update", Action{Before: func(context.Context) error { a.put("one", "theirs"); return nil }})
	})
	maps := clientset(t, c, true).CoreV1().ConfigMaps("default")
	obj, err := maps.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Update(t.Context(), obj, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("Update = %v, want the server's conflict", err)
	}
}

func TestAnswerReachesTheClientAsAnAPIErrorInItsOwnEncoding(t *testing.T) {
	for _, asProtobuf := range []bool{false, true} {
		a := newAPI(t)
		log := trace.NewLog(time.Now())
		_, c := through(t, a, func(c *Config) {
			c.Log = log
			c.Decider = onWrite("create", Action{Answer: status(504, metav1.StatusReasonTimeout, "timed out")})
		})
		_, err := clientset(t, c, asProtobuf).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("one", "1"), metav1.CreateOptions{})
		if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "timed out") {
			t.Errorf("Create = %v, want the timeout (protobuf: %v)", err, asProtobuf)
		}
		if call := log.Entries()[0].Call; !call.Injected || call.Code != 504 || call.Reason != "Timeout" {
			t.Errorf("recorded %+v, want an injected 504", call)
		}
	}
}

func TestRetryAfterMakesClientGoTryAgain(t *testing.T) {
	a := newAPI(t)
	_, c := through(t, a, func(c *Config) {
		c.Decider = onWrite("create", Action{Answer: status(429, metav1.StatusReasonTooManyRequests, "slow down"), RetryAfter: 1})
	})
	if _, err := clientset(t, c, false).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("one", "1"), metav1.CreateOptions{}); err != nil {
		t.Errorf("Create = %v, want success on the second try", err)
	}
}

func TestClientHasNothingUntilCommittedReturns(t *testing.T) {
	a := newAPI(t)
	committed, goOn := make(chan *trace.Call), make(chan struct{})
	_, c := through(t, a, func(c *Config) {
		c.Decider = onWrite("create", Action{Committed: func(c *trace.Call) { committed <- c; <-goOn }})
	})
	answered := make(chan error, 1)
	go func() {
		_, err := clientset(t, c, false).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("one", "1"), metav1.CreateOptions{})
		answered <- err
	}()
	call := <-committed
	if call.Code != 201 || call.ResourceVersion != "101" {
		t.Errorf("Committed got status %d and version %q, want the server's answer", call.Code, call.ResourceVersion)
	}
	select {
	case err := <-answered:
		t.Errorf("the client was answered (%v) before Committed returned", err)
	default:
	}
	close(goOn)
	if err := <-answered; err != nil {
		t.Errorf("Create = %v", err)
	}
}

func TestWriteIsCommittedThoughItsClientIsGone(t *testing.T) {
	a := newAPI(t)
	ctx, kill := context.WithCancel(t.Context())
	log := trace.NewLog(time.Now())
	recorded := make(chan struct{})
	_, c := through(t, a, func(c *Config) {
		c.Log = log
		c.Decider = onWrite("create", Action{
			Before:    func(context.Context) error { return nil },
			Committed: func(c *trace.Call) { kill(); c.Lost = true; close(recorded) },
		})
	})
	_, err := clientset(t, c, false).CoreV1().ConfigMaps("default").Create(ctx, configMap("one", "1"), metav1.CreateOptions{})
	<-recorded
	if err == nil || a.put("one", "2") != 102 {
		t.Errorf("Create = %v, want an error after the write was committed", err)
	}
}

func TestWriteIsCommittedThoughTheProxyIsStoppedMeanwhile(t *testing.T) {
	a := newAPI(t)
	var p *Proxy
	committed := make(chan int, 1)
	p, c := through(t, a, func(c *Config) {
		c.Decider = onWrite("create", Action{
			Before: func(context.Context) error { // as when the process of the client ends at once
				go p.Stop()
				<-p.ctx.Done()
				return nil
			},
			Committed: func(c *trace.Call) { committed <- c.Code },
		})
	})
	_, _ = clientset(t, c, false).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("one", "1"), metav1.CreateOptions{})
	p.Stop() // waits for what is still on its way
	select {
	case code := <-committed:
		if code != http.StatusCreated || a.put("one", "2") != 102 {
			t.Errorf("the server answered with %d, and the object is not there", code)
		}
	default:
		t.Error("the write was not carried out")
	}
}

func TestNothingIsForwardedUntilAnsweredReturns(t *testing.T) {
	bothProtocols(t, func(t *testing.T, wrap func(*rest.Config) *rest.Config) {
		a := newAPI(t)
		answered, goOn := make(chan struct{}), make(chan struct{})
		p, c := through(t, a, func(c *Config) {
			c.Decider = onWrite("create", Action{Answered: func(*trace.Call) { close(answered); <-goOn }})
		})
		maps := clientset(t, wrap(c), false).CoreV1().ConfigMaps("default")
		if _, err := maps.Create(t.Context(), configMap("one", "1"), metav1.CreateOptions{}); err != nil {
			t.Fatalf("the client must have its answer while Answered runs: %v", err)
		}
		<-answered
		got := make(chan error, 1)
		go func() {
			_, err := maps.Get(t.Context(), "one", metav1.GetOptions{})
			got <- err
		}()
		until(t, p, func(a Activity) bool { return a.Waiting == 1 })
		if n := count(a.requests(), "GET"); n != 0 {
			t.Errorf("%d requests were forwarded before Answered returned", n)
		}
		close(goOn)
		if err := <-got; err != nil {
			t.Errorf("Get = %v", err)
		}
	})
}

func TestNobodyIsLetInWithoutTheToken(t *testing.T) {
	a := newAPI(t)
	p, _ := through(t, a, nil)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, given := range []string{"", "Bearer ", "Bearer the identity's"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.address+"/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", given)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("with the Authorization header %q, the answer is %d, want 401", given, resp.StatusCode)
		}
	}
	if got := a.requests(); len(got) != 0 {
		t.Errorf("%v got to the server", got)
	}
}

func TestBorrowedIdentityCannotImpersonateOthers(t *testing.T) {
	a := newAPI(t)
	_, c := through(t, a, func(c *Config) { c.Upstream.Impersonate.UserName = "system:serviceaccount:x:y" })
	c.Impersonate.UserName = "system:admin"
	_, err := clientset(t, c, false).CoreV1().ConfigMaps("default").Get(t.Context(), "one", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) || len(a.requests()) != 0 {
		t.Errorf("Get = %v, and the server got %v; want a refusal by the proxy", err, a.requests())
	}
}

func TestOwnIdentityMayImpersonate(t *testing.T) {
	a := newAPI(t)
	a.put("one", "1")
	_, c := through(t, a, nil)
	c.Impersonate.UserName = "jane"
	if _, err := clientset(t, c, false).CoreV1().ConfigMaps("default").Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := a.headers.Get("Impersonate-User"); got != "jane" {
		t.Errorf("the server was asked to impersonate %q, want jane: the server decides whether the identity may impersonate her", got)
	}
}

func count(requests []string, method string) int {
	n := 0
	for _, r := range requests {
		if strings.HasPrefix(r, method+" ") {
			n++
		}
	}
	return n
}

// until waits until want accepts the proxy's activity.
func until(t *testing.T, p *Proxy, want func(Activity) bool) {
	t.Helper()
	for {
		changed := p.Changed()
		if want(p.Activity()) {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("the proxy never reached the expected activity; it is %+v", p.Activity())
		}
	}
}

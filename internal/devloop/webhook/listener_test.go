package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/pki"
)

// rig is a listener with a client that trusts it, as the API server does.
type rig struct {
	*Listener
	t         *testing.T
	authority *pki.Authority
	client    *http.Client

	mu      sync.Mutex
	reviews []Review
}

func newRig(t *testing.T) *rig {
	t.Helper()
	authority, err := pki.New("a plane")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, authority: authority}
	r.Listener, err = Listen(authority, func(review Review) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reviews = append(r.reviews, review)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Cert)
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

// manager starts a webhook server with the certificate that a manager gets, and returns its
// address.
func (r *rig) manager(handle http.HandlerFunc) (*httptest.Server, string) {
	r.t.Helper()
	return r.managerAt(handle, "127.0.0.1:0")
}

func (r *rig) managerAt(handle http.HandlerFunc, address string) (*httptest.Server, string) {
	r.t.Helper()
	dir := r.t.TempDir()
	if err := Files(r.authority, dir); err != nil {
		r.t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		r.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handle)
	_ = server.Listener.Close()
	if server.Listener, err = net.Listen("tcp", address); err != nil {
		r.t.Fatal(err)
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	r.t.Cleanup(server.Close)
	return server, server.Listener.Addr().String()
}

// review calls a webhook and returns the answer, or an error for any status but 200.
func (r *rig) review(ctx context.Context, text string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL("/validate?timeout=10s"), strings.NewReader(text))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := r.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, data)
	}
	return string(data), err
}

// echo answers with the number of the process and the review.
func echo(process int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%d %s %s", process, r.URL.RequestURI(), data)
	}
}

func TestNoReviewIsRefusedAndEachIsAnsweredOnceDuringRestarts(t *testing.T) {
	r := newRig(t)
	_, address := r.manager(echo(0))
	r.Resume(address)
	const reviews, restarts = 200, 20
	var all sync.WaitGroup
	failures := make(chan error, reviews)
	for i := range reviews {
		all.Go(func() {
			want := fmt.Sprintf("/validate?timeout=10s %d", i)
			if got, err := r.review(t.Context(), fmt.Sprint(i)); err != nil || !strings.HasSuffix(got, want) {
				failures <- fmt.Errorf("review %d: %q, %w", i, got, err)
			}
		})
	}
	for i := range restarts {
		r.Pause(t.Context())
		_, address := r.manager(echo(i + 1))
		r.Resume(address)
	}
	all.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	if len(r.reviews) != reviews {
		t.Errorf("%d reviews were observed, want %d", len(r.reviews), reviews)
	}
}

// end ends a server as the kernel ends that of a killed process: nothing is accepted any more,
// and connections break.
func end(server *httptest.Server) {
	_ = server.Listener.Close()
	server.CloseClientConnections()
}

// hold returns a handler that keeps a review until its connection breaks, and a channel that is
// closed when the review has arrived.
func hold() (http.HandlerFunc, <-chan struct{}) {
	received := make(chan struct{})
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body) // or else the server does not notice that the connection breaks
		close(received)
		<-r.Context().Done()
	}, received
}

func TestAReviewWhoseProcessEndsIsAnsweredByTheNextOne(t *testing.T) {
	r := newRig(t)
	handle, received := hold()
	dying, address := r.manager(handle)
	r.Resume(address)
	answers := make(chan string)
	go func() {
		got, err := r.review(t.Context(), "a")
		answers <- fmt.Sprint(got, err)
	}()
	<-received
	end(dying)
	_, address = r.manager(echo(2))
	r.Resume(address)
	if got := <-answers; got != "2 /validate?timeout=10s a<nil>" {
		t.Errorf("got %q", got)
	}
}

func TestAReviewThatALivingProcessDropsFailsAndIsNotSentAgain(t *testing.T) {
	r := newRig(t)
	var calls atomic.Int64
	_, address := r.manager(func(http.ResponseWriter, *http.Request) {
		calls.Add(1)
		panic(http.ErrAbortHandler) // net/http closes the connection without an answer
	})
	r.Resume(address)
	if _, err := r.review(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), errDropped.Error()) {
		t.Errorf("got %v", err)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times, want once", n)
	}
	done, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r.Pause(done)
	if done.Err() != nil {
		t.Error("the dropped review still counts as forwarded")
	}
}

func TestAProcessAtTheSameAddressIsANewOne(t *testing.T) {
	r := newRig(t)
	handle, received := hold()
	dying, address := r.manager(handle)
	r.Resume(address)
	answers := make(chan error, 1)
	go func() {
		_, err := r.review(t.Context(), "a")
		answers <- err
	}()
	<-received
	end(dying)
	r.Pause(t.Context())
	r.managerAt(echo(1), address)
	r.Resume(address)
	if err := <-answers; err != nil {
		t.Error(err)
	}
}

func TestReviewsAreRefusedWithTheReasonUntilTheNextProcess(t *testing.T) {
	r := newRig(t)
	held := make(chan error, 1)
	go func() {
		_, err := r.review(t.Context(), "held")
		held <- err
	}()
	r.Refuse("the manager crashed")
	for _, err := range []error{<-held, func() error { _, err := r.review(t.Context(), "later"); return err }()} {
		if err == nil || !strings.Contains(err.Error(), "the manager crashed") {
			t.Errorf("got %v", err)
		}
	}
	_, address := r.manager(echo(1))
	r.Resume(address)
	if _, err := r.review(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestPauseReturnsOnlyWhenEveryReviewIsAnswered(t *testing.T) {
	r := newRig(t)
	received, release := make(chan struct{}), make(chan struct{})
	_, address := r.manager(func(w http.ResponseWriter, request *http.Request) {
		close(received)
		<-release
		echo(1)(w, request)
	})
	r.Resume(address)
	answered := make(chan error, 1)
	go func() {
		_, err := r.review(t.Context(), "a")
		answered <- err
	}()
	<-received
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	r.Pause(short)
	if short.Err() == nil {
		t.Fatal("Pause returned although the manager still had a review")
	}
	close(release)
	r.Pause(t.Context())
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestAReviewFailsWhenTheAPIServerNoLongerWaits(t *testing.T) {
	r := newRig(t)
	// On a busy machine, a review may not reach the listener while its client waits. So the
	// client waits longer each time.
	for within := 50 * time.Millisecond; within < time.Minute; within *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		_, err := r.review(ctx, "a")
		cancel()
		// While the client closes its connection, the answer of the listener may still reach it.
		if !errors.Is(err, context.DeadlineExceeded) && (err == nil || !strings.Contains(err.Error(), "no longer waits")) {
			t.Errorf("got %v", err)
		}
		// The client is gone; the observer still learns why.
		if review, ok := r.observed(within); ok {
			if !strings.Contains(review.Err, "the manager was not running") || review.Held <= 0 {
				t.Errorf("got %+v", review)
			}
			return
		}
	}
	t.Error("the review was not observed")
}

// observed waits for the first review that the listener has passed on.
func (r *rig) observed(within time.Duration) (Review, bool) {
	for late := time.After(within); ; {
		r.mu.Lock()
		reviews := r.reviews
		r.mu.Unlock()
		if len(reviews) > 0 {
			return reviews[0], true
		}
		select {
		case <-late:
			return Review{}, false
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAReviewIsForwardedAndObservedAsItIs(t *testing.T) {
	r := newRig(t)
	_, address := r.manager(func(w http.ResponseWriter, request *http.Request) {
		data, _ := io.ReadAll(request.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(bytes.ToUpper(data))
	})
	if !r.Ready(t.Context(), address) {
		t.Fatal("the server is not ready")
	}
	r.Resume(address)
	if _, err := r.review(t.Context(), "{}a"); err == nil || err.Error() != "418 I'm a teapot: {}A" {
		t.Errorf("got %v", err)
	}
	r.Close()
	got := r.reviews[0]
	if got.Status != http.StatusTeapot || got.Path != "/validate" || got.Request.Len() != 3 || got.Response.Len() != 3 || got.Err != "" || got.Took <= 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAServerWithACertificateOfAnotherAuthorityIsNotReady(t *testing.T) {
	r, other := newRig(t), newRig(t)
	_, address := other.manager(echo(1))
	if r.Ready(t.Context(), address) {
		t.Error("the listener trusts another authority")
	}
}

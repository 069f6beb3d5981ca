// Package webhook stands between the API server and the webhooks of a manager that is often
// restarted.
//
//	kube-apiserver ──review──▶ Listener ──▶ the manager's process of the moment
//	                              │ holds reviews while there is none
//	                              └──▶ Observer
//
// The address and the authority of the listener stay the same for the life of the plane, so the
// webhook configurations are written once. A review that arrives during a restart waits for the
// next process, as long as the API server waits. Therefore no request is refused because of a
// restart.
//
//	         Pause            Resume
//	forwards ─────▶ holds ──────────▶ forwards
//	                  │ Refuse           ▲
//	                  └─────▶ refuses ───┘ Resume
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/broadcast"
	"github.com/koboshi-dev/koboshi/internal/freeport"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

// maxBody is the maximum size of a review in bytes. A ConversionReview holds all objects of a
// list; the limit only protects against a client that is not the API server.
const maxBody = 1 << 30

// Listener is a running server for reviews.
type Listener struct {
	listener net.Listener
	server   *http.Server
	observe  func(Review)
	client   *http.Client
	ended    chan struct{}

	mu        sync.Mutex
	target    *target // nil while no process answers
	refusal   error   // the answer while no process is expected; otherwise nil
	forwarded int     // reviews that the manager has not answered yet
	changed   broadcast.Signal
}

// target is a process that answers reviews. Each call of Resume makes a new target, even at the
// same address.
type target struct{ address string }

// Listen serves on a free port of 127.0.0.1 until Close is called. The authority signs the
// listener's certificate, and must also have signed the manager's; see Files. After each
// review, the listener calls observe, unless it is nil, from several goroutines.
func Listen(authority *pki.Authority, observe func(Review)) (*Listener, error) {
	certificate, pool, err := identity(authority)
	if err != nil {
		return nil, fmt.Errorf("starting the webhook listener: %w", err)
	}
	open, err := freeport.Listen(0)
	if err != nil {
		return nil, fmt.Errorf("starting the webhook listener: %w", err)
	}
	l := &Listener{
		listener: open, observe: observe, ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: ServerName, MinVersion: tls.VersionTLS12},
			// An open connection to a process that has ended would only cost a failed attempt.
			DisableKeepAlives: true,
		}},
	}
	l.server = &http.Server{
		Handler:           http.HandlerFunc(l.serve),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // handshakes that clients end
	}
	if observe == nil {
		l.observe = func(Review) {}
	}
	go func() {
		defer close(l.ended)
		_ = l.server.Serve(tls.NewListener(open, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	}()
	return l, nil
}

// URL returns the address for clientConfig.url of a webhook with this path.
func (l *Listener) URL(path string) string { return "https://" + l.listener.Addr().String() + path }

// Resume forwards reviews to the manager's webhook server at an address such as
// 127.0.0.1:9443, beginning with those that wait. Call it when the server accepts connections;
// see Ready.
func (l *Listener) Resume(address string) {
	l.set(&target{address}, nil)
}

// Refuse answers all reviews with an error until Resume or Pause is called. Use it when no
// next process is expected soon, for example after a crash.
func (l *Listener) Refuse(reason string) {
	l.set(nil, errors.New(reason))
}

func (l *Listener) set(t *target, refusal error) {
	l.mu.Lock()
	l.target, l.refusal = t, refusal
	l.mu.Unlock()
	l.changed.Fire()
}

// Pause makes further reviews wait for Resume, and returns when the manager has answered all
// reviews that it has received, or when ctx ends. Then the process can be ended without
// refusing any review.
func (l *Listener) Pause(ctx context.Context) {
	l.set(nil, nil)
	for {
		changed := l.changed.Next()
		l.mu.Lock()
		left := l.forwarded
		l.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the listener. Reviews that wait fail.
func (l *Listener) Close() {
	_ = l.server.Close()
	<-l.ended
	l.client.CloseIdleConnections()
}

// Ready reports whether the manager's webhook server at this address completes a TLS handshake.
func (l *Listener) Ready(ctx context.Context, address string) bool {
	return l.handshake(ctx, address)
}

// lives reports whether a process that has just failed to answer still serves. A process that ends
// closes its listening socket too, and can complete no handshake after that. While the process is
// the current target, no other process can have its address.
func (l *Listener) lives(ctx context.Context, t *target) bool {
	if !l.handshake(ctx, t.address) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.target == t
}

// handshakeWithin limits the wait for a process that neither serves nor ends.
const handshakeWithin = 2 * time.Second

func (l *Listener) handshake(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	dialer := tls.Dialer{Config: l.client.Transport.(*http.Transport).TLSClientConfig}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func (l *Listener) serve(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, fmt.Sprintf("reading the review: %v", err), http.StatusRequestEntityTooLarge)
		return
	}
	answered, held, err := l.forward(r, body)
	review := newReview(r, body, began, held, answered, err)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	} else {
		w.Header().Set("Content-Type", answered.contentType)
		w.WriteHeader(answered.status)
		_, _ = w.Write(answered.body)
	}
	review.Took = time.Since(began)
	l.observe(review)
}

// errDropped reports a review that a living process did not answer.
var errDropped = errors.New("the manager closed the connection without an answer, and still runs; its webhook handler probably panicked, so see the manager's output")

// forward sends a review to the manager. If the manager ends before it answers, forward waits
// for the next one. If the manager drops the review and continues, forward fails, because the
// next process would probably do the same. It also returns how long the review waited.
func (l *Listener) forward(r *http.Request, body []byte) (answered answer, held time.Duration, err error) {
	var failed *target
	for {
		waited := time.Now()
		to, err := l.enter(r.Context(), failed)
		held += time.Since(waited)
		if err != nil {
			return answer{}, held, err
		}
		answered, err := l.send(r, to.address, body)
		l.leave()
		if err == nil || r.Context().Err() != nil {
			return answered, held, err
		}
		if l.lives(r.Context(), to) {
			return answer{}, held, errDropped
		}
		failed = to
	}
}

// enter waits for a process other than the one that has failed, and counts the review as
// forwarded to it.
func (l *Listener) enter(ctx context.Context, failed *target) (*target, error) {
	for {
		changed := l.changed.Next()
		l.mu.Lock()
		to, refusal := l.target, l.refusal
		if to != nil && to != failed {
			l.forwarded++
			l.mu.Unlock()
			return to, nil
		}
		l.mu.Unlock()
		if refusal != nil {
			return nil, refusal
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errors.New("the manager was not running, and the API server no longer waits for its webhook")
		}
	}
}

func (l *Listener) leave() {
	l.mu.Lock()
	l.forwarded--
	l.mu.Unlock()
	l.changed.Fire()
}

func (l *Listener) send(r *http.Request, address string, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, "https://"+address+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("forwarding a review: %w", err)
	}
	request.Header = r.Header.Clone()
	request.Header.Del("Accept-Encoding") // so that the client decompresses the answer
	response, err := l.client.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("forwarding a review: %w", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("reading the manager's answer: %w", err)
	}
	return answer{status: response.StatusCode, contentType: response.Header.Get("Content-Type"), body: data}, nil
}

// Package faultserver is an HTTP(S) server on loopback with configurable faults. Tests and
// measurements of S3 clients use the server.
//
//	request ──▶ recorded ──▶ is there a rule that matches and is not used up?
//	                             │ yes            │ no
//	                             ▼                ▼
//	                           fault ──────▶ handler behind the server
//	                         (some faults)   (or a real store)
//
// A record has only the time, the method, the path and the query. Headers are never
// kept, because they contain signatures.
package faultserver

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// TB has the methods of *testing.T, *testing.B and Ginkgo's GinkgoT() that a Server
// uses.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Fault returns a handler that answers instead of the handler behind the server, or
// calls that handler and spoils its response.
type Fault func(behind http.Handler) http.Handler

// Rule defines which requests get a fault, and which fault they get.
type Rule struct {
	// Method is the method of the request; empty means any.
	Method string
	// Path is a prefix of the request's path; empty means any.
	Path string
	// Query is a part of the request's raw query, for example "tagging"; empty
	// means any.
	Query string
	// Skip is the number of matching requests that pass before the first fault.
	Skip int
	// Times is the number of requests that get the fault; 0 means all.
	Times int
	// Fault is the fault that the selected requests get.
	Fault Fault

	seen int
}

// takes reports whether the request gets the rule's fault. It counts the request if the
// rule matches it.
func (r *Rule) takes(req *http.Request) bool {
	if (r.Method != "" && r.Method != req.Method) ||
		!strings.HasPrefix(req.URL.Path, r.Path) || !strings.Contains(req.URL.RawQuery, r.Query) {
		return false
	}
	r.seen++
	return r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times)
}

// Request is the record of a request.
type Request struct {
	Method, Path, Query string
	// At is the time at which the request's headers had arrived.
	At time.Time
}

// String returns the request line without the HTTP version.
func (r Request) String() string {
	if r.Query == "" {
		return r.Method + " " + r.Path
	}
	return r.Method + " " + r.Path + "?" + r.Query
}

// Server is a running server. Its address stays the same from Start to the end
// of the test, even while it is down.
type Server struct {
	// URL is the endpoint: http or https, 127.0.0.1, a port.
	URL string

	tb      TB
	options options
	handler http.Handler
	roots   *x509.CertPool
	address string

	// ctx is the base context of the requests. It ends with the test, so that faults
	// that hang end as well.
	ctx context.Context

	mu          sync.Mutex
	rules       []*Rule
	requests    []Request
	count       int
	connections int
	open        map[net.Conn]bool
	running     *http.Server
	listener    net.Listener
}

type options struct {
	behind  http.Handler
	tls     Certificate
	useTLS  bool
	noTrace bool
}

// Option changes a setting with which a Server is started.
type Option func(*options)

// Behind puts a handler behind the server, for requests that no rule matches. Without a
// handler, requests that no rule matches get 200 and no body.
func Behind(h http.Handler) Option { return func(o *options) { o.behind = h } }

// Before puts the server in front of a real store. Requests that no rule matches are
// passed on unchanged, including the host name, so that their signatures stay valid.
func Before(store *url.URL) Option {
	return Behind(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(store)
			r.Out.Host = r.In.Host
		},
		Transport:     &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		FlushInterval: -1,
		ErrorLog:      silent,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			// If the store cannot be reached, its clients see a broken connection and no
			// response.
			abort(w)
		},
	})
}

// TLS makes the server speak TLS with the given certificate.
func TLS(c Certificate) Option { return func(o *options) { o.useTLS, o.tls = true, c } }

// WithoutRecord turns off the recording of single requests, for measurements; Count
// still works.
func WithoutRecord() Option { return func(o *options) { o.noTrace = true } }

// Start starts a server that stops with the test.
func Start(tb TB, opts ...Option) *Server {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{tb: tb, ctx: ctx, open: map[net.Conn]bool{}}
	s.options.behind = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, option := range opts {
		option(&s.options)
	}
	s.handler = http.HandlerFunc(s.serve)
	s.address = "127.0.0.1:0"
	s.Up()
	s.URL = "http://" + s.address
	if s.options.useTLS {
		s.URL = "https://" + s.address
	}
	tb.Cleanup(func() {
		cancel()
		s.Down()
	})
	return s
}

// Up makes a server that is down listen again at its address.
func (s *Server) Up() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return
	}
	listener, err := listen(s.address)
	if err != nil {
		s.tb.Fatalf("faultserver: listening: %v", err)
		return
	}
	s.address = listener.Addr().String()
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          silent,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ConnState:         s.track,
		ConnContext:       rememberConnection,
	}
	if s.options.useTLS {
		config, roots, err := s.options.tls.config()
		if err != nil {
			s.tb.Fatalf("faultserver: creating the certificate: %v", err)
			return
		}
		server.TLSConfig, s.roots = config, roots
	}
	s.running, s.listener = server, listener
	go func() {
		if s.options.useTLS && s.options.tls != PlainHTTP {
			_ = server.ServeTLS(listener, "", "")
			return
		}
		_ = server.Serve(listener)
	}()
}

// listen listens at an address. While a server is down, the system may give its port to a
// connection of another program, so listen tries again while the port is taken.
func listen(address string) (net.Listener, error) {
	tick, late := time.NewTicker(10*time.Millisecond), time.After(10*time.Second)
	defer tick.Stop()
	for {
		listener, err := net.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
		select {
		case <-tick.C:
		case <-late:
			return nil, err
		}
	}
}

// Down closes the listener and all connections, and cuts off requests in
// progress. It returns when everything is closed.
func (s *Server) Down() {
	s.mu.Lock()
	server, listener := s.running, s.listener
	s.running, s.listener = nil, nil
	s.mu.Unlock()
	if server != nil {
		// If the server has only just been started, server.Close may not close the
		// listener.
		_ = listener.Close()
		_ = server.Close()
	}
}

// CloseConnections closes all open connections, like a store that closes idle
// connections. The server continues to listen.
func (s *Server) CloseConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// Script adds rules. The first rule that matches a request applies.
func (s *Server) Script(rules ...Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range rules {
		s.rules = append(s.rules, &rule)
	}
}

// Heal drops all rules.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// Requests returns the requests since the start, or since Forget.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Lines returns the Requests as text.
func (s *Server) Lines() []string {
	var lines []string
	for _, r := range s.Requests() {
		lines = append(lines, r.String())
	}
	return lines
}

// Count returns the number of requests since the start, or since Forget.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Connections returns the number of connections opened since the start, or since
// Forget.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

// Forget drops all records.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.count, s.connections = nil, 0, 0
}

// RootCAs returns the certificates that a client must trust if the server speaks TLS.
func (s *Server) RootCAs() *x509.CertPool { return s.roots }

// CAPEM returns the certificate of the authority that signs Good certificates.
func (s *Server) CAPEM() ([]byte, error) {
	a, err := testAuthority()
	if err != nil {
		return nil, fmt.Errorf("creating the authority: %w", err)
	}
	return a.pem, nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if fault := s.record(r); fault != nil {
		fault(s.options.behind).ServeHTTP(w, r)
		return
	}
	s.options.behind.ServeHTTP(w, r)
}

// record records the request and returns its fault; nil means none.
func (s *Server) record(r *http.Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if !s.options.noTrace {
		s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, At: time.Now()})
	}
	for _, rule := range s.rules {
		if rule.takes(r) {
			return rule.Fault
		}
	}
	return nil
}

// track keeps track of the connections.
func (s *Server) track(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.connections++
		s.open[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(s.open, c)
	}
}

// silent drops the messages that net/http logs about intended faults.
var silent = log.New(discard{}, "", 0)

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// inProcess lets the server's own clients call the server without a connection.
// The server's clients make hundreds of requests during the start, and their
// informers make more later. Requests without a connection pass through the
// same filters and have the same user as requests over a connection. A request
// goes over the network if it is for another host or if there is no handler
// yet.
type inProcess struct {
	host    string // the address of the server as host:port
	handler atomic.Pointer[http.Handler]
}

func (p *inProcess) serve(h http.Handler) { p.handler.Store(&h) }

// wrap is a function for rest.Config.WrapTransport.
func (p *inProcess) wrap(network http.RoundTripper) http.RoundTripper {
	return inProcessTransport{p, network}
}

type inProcessTransport struct {
	*inProcess
	network http.RoundTripper
}

func (t inProcessTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	h := t.handler.Load()
	if h == nil || r.URL.Host != t.host {
		return t.network.RoundTrip(r)
	}
	return carry(*h, r, nil)
}

// InProcess returns a transport to the running server for a client in this
// process, without a connection. A request without a connection passes through
// the same filters as any other request. If c has a client certificate, the
// certificate determines the user. The caller sets tokens and other headers.
// Protocol upgrades are not possible; they need a connection.
func (s *Server) InProcess(c *rest.Config) (http.RoundTripper, error) {
	c = rest.CopyConfig(c)
	if err := rest.LoadTLSFiles(c); err != nil {
		return nil, err
	}
	way := &shortWay{inProcess: s.self}
	if len(c.CertData) > 0 {
		pair, err := tls.X509KeyPair(c.CertData, c.KeyData)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		way.certificates = []*x509.Certificate{pair.Leaf}
	}
	return way, nil
}

// shortWay is the transport of a client that authenticates by its certificate
// or its headers.
type shortWay struct {
	*inProcess
	certificates []*x509.Certificate
}

func (t *shortWay) RoundTrip(r *http.Request) (*http.Response, error) {
	h := t.handler.Load()
	if h == nil {
		return nil, errors.New("the API server is not serving yet")
	}
	return carry(*h, r, t.certificates)
}

// carry passes a request to a handler and returns the handler's response.
func carry(h http.Handler, r *http.Request, certificates []*x509.Certificate) (*http.Response, error) {
	// ctx ends together with the client's context, but has none of its values,
	// as if there were a connection.
	ctx, cancel := context.WithCancel(context.Background())
	unlink := context.AfterFunc(r.Context(), cancel)
	body, written := io.Pipe()
	w := &inProcessWriter{ctx: ctx, header: http.Header{}, body: written, answered: make(chan struct{})}
	go func() {
		defer cancel()
		defer unlink()
		err := w.run(h, arriving(ctx, r, certificates))
		if err == nil {
			err = r.Context().Err() // a stream that the client canceled is incomplete
		}
		w.end(err)
		_ = written.CloseWithError(err)
		if r.Body != nil {
			_ = r.Body.Close()
		}
	}()
	select {
	case <-w.answered:
	case <-r.Context().Done():
		_ = body.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	if w.failed != nil {
		return nil, w.failed
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)),
		StatusCode:    w.status,
		Proto:         "HTTP/2.0",
		ProtoMajor:    2,
		Header:        w.sent,
		Body:          &inProcessBody{PipeReader: body, cancel: cancel},
		ContentLength: -1,
		Request:       r,
	}, nil
}

// arriving returns the request as a server would read it from a connection.
func arriving(ctx context.Context, r *http.Request, certificates []*x509.Certificate) *http.Request {
	in := r.Clone(ctx)
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/2.0", 2, 0
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:0"
	in.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, PeerCertificates: certificates}
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// inProcessBody is a response body. Closing the body ends the request.
type inProcessBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *inProcessBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// inProcessWriter carries a handler's response to the client.
type inProcessWriter struct {
	ctx    context.Context
	header http.Header
	body   *io.PipeWriter

	once     sync.Once
	answered chan struct{} // closed when the fields below are set
	status   int
	sent     http.Header
	failed   error
}

// end completes the response if the handler has returned without writing one.
func (w *inProcessWriter) end(err error) {
	w.once.Do(func() {
		w.status, w.sent, w.failed = http.StatusOK, w.header.Clone(), err
		close(w.answered)
	})
}

// run calls the handler, and returns an error if the handler panics, because the response is then
// unfinished.
func (w *inProcessWriter) run(h http.Handler, r *http.Request) (err error) {
	defer func() {
		if recover() != nil {
			err = errUnfinished
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

var errUnfinished = errors.New("the server did not finish its response")

func (w *inProcessWriter) Header() http.Header { return w.header }

func (w *inProcessWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		return // informational responses are ignored
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.answered)
	})
}

func (w *inProcessWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *inProcessWriter) Flush() { w.WriteHeader(http.StatusOK) }

// CloseNotify makes the writer look like a connection: upstream checks for this
// method.
func (w *inProcessWriter) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { gone <- true })
	return gone
}

package s3store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
)

const (
	// maxBody limits how much of a response body is read. The longest response is a list
	// of 1,000 versions with names of 1,024 bytes, each byte URL-encoded as three
	// characters: less than 4 MiB.
	maxBody = 8 << 20

	// maxSmallBody limits how much is read of an error, or of a listing of one item.
	maxSmallBody = 64 << 10

	// maxStart limits how much of the start of a body is kept. An error's code is near
	// the start.
	maxStart = 1 << 10

	// maxHeader limits the headers of a response.
	maxHeader = 64 << 10

	// These limits apply if the deadline of the caller's context is later, or if the
	// context has no deadline.
	dialTimeout   = 30 * time.Second
	answerTimeout = 2 * time.Minute

	// idleTimeout is long enough to keep a connection from one probe to the next at the
	// usual intervals. If a store closes the connection earlier, net/http opens a new
	// one.
	idleTimeout = 90 * time.Second
)

// proxyFunc returns the proxy for a request; nil, nil means none.
type proxyFunc func(*http.Request) (*url.URL, error)

// line sends requests to one store, over kept connections or over a new one.
type line struct {
	guard *egress.Guard
	proxy proxyFunc
	// proxyAddress is the host:port of the proxy; nil until a proxy has been used. The proxy's
	// address is the only one that the guard does not check, because it comes from the operator's
	// own environment.
	proxyAddress atomic.Pointer[string]
	cleared      verdicts
	// requested counts requests; it may be nil.
	requested func(operation string, status int)

	kept, fresh *http.Client
}

func newLine(guard *egress.Guard, roots *x509.CertPool, connections int, proxy proxyFunc) *line {
	l := &line{guard: guard, proxy: proxy}
	transport := &http.Transport{
		Proxy:       l.proxyFor,
		DialContext: l.dial,
		// All buckets of a store share its connections, and the limiter
		// bounds the number of requests in progress.
		MaxIdleConns:        connections,
		MaxIdleConnsPerHost: connections,
		IdleConnTimeout:     idleTimeout,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout: dialTimeout,

		ResponseHeaderTimeout:  answerTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true,
	}
	l.kept = client(transport)
	transport = transport.Clone()
	transport.DisableKeepAlives = true
	l.fresh = client(transport)
	return l
}

// client returns a client that does not follow redirects. A redirect is classified like any
// other response. Not following redirects is also safer, because a signature is valid for
// one host and must not be sent to another.
func client(t *http.Transport) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (l *line) close() {
	l.kept.CloseIdleConnections()
	l.fresh.CloseIdleConnections()
}

// dial connects to the store, or to the proxy in front of it.
func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	if proxy := l.proxyAddress.Load(); proxy == nil || *proxy != address {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		dialer.Control = l.guard.Control(host)
	}
	return dialer.DialContext(ctx, network, address)
}

// proxyFor returns the proxy for a request. If there is a proxy, the connection is to
// the proxy's address, and dial cannot check the store's address. So proxyFor checks it.
func (l *line) proxyFor(r *http.Request) (*url.URL, error) {
	proxy, err := l.proxy(r)
	if err != nil || proxy == nil {
		return nil, err
	}
	if err := l.judgeTarget(r.Context(), r.URL); err != nil {
		return nil, err
	}
	address := proxyAddress(proxy)
	if known := l.proxyAddress.Load(); known == nil || *known != address {
		l.proxyAddress.Store(&address)
	}
	return proxy, nil
}

// proxyAddress returns the address that net/http dials for a proxy.
func proxyAddress(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}

func (l *line) judgeTarget(ctx context.Context, target *url.URL) error {
	if err := l.guard.CheckURL(target); err != nil {
		return err
	}
	host := strings.ToLower(target.Hostname())
	if l.cleared.has(host) {
		return nil
	}
	if err := l.guard.CheckResolved(ctx, host); err != nil {
		return err
	}
	l.cleared.add(host)
	return nil
}

// exchange records the last request of a call, its response, and the times of both,
// because the SDK hides the response behind its error types. The exchange is passed in
// the context.
type exchange struct {
	// fresh requests a new connection; small means that a small response is expected.
	fresh, small bool

	sent, answered time.Time
	answer         *http.Response
	// status is the original status of the response. The SDK changes the status of some
	// responses.
	status int
	// start is the beginning of the body.
	start []byte
	// bodyErr is the error that ended the body early; nil if the body is complete.
	bodyErr error
}

type exchangeKey struct{}

func (x *exchange) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// latency returns the time from the request to the response, or zero if there was no
// response.
func (x *exchange) latency() time.Duration {
	if x.answer == nil {
		return 0
	}
	return max(x.answered.Sub(x.sent), 1)
}

// Do sends one request. This method lets a line serve as the HTTP client of the S3 client.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	if x == nil {
		x = &exchange{}
	}
	x.answer, x.start, x.bodyErr = nil, nil, nil
	client := l.kept
	if x.fresh {
		client = l.fresh
	}
	if err := bufferBody(r); err != nil {
		return nil, err
	}
	x.sent = time.Now()
	resp, err := client.Do(r)
	l.count(r, resp)
	if err != nil {
		return nil, err
	}
	x.answer, x.status, x.answered = resp, resp.StatusCode, time.Now()
	if resp.Body != http.NoBody {
		limit := maxBody
		if x.small || resp.StatusCode >= 300 {
			limit = maxSmallBody
		}
		resp.Body = &boundedBody{body: resp.Body, left: limit, x: x}
	}
	return resp, nil
}

// count counts a request. The response is nil if there was none.
func (l *line) count(r *http.Request, response *http.Response) {
	if l.requested == nil {
		return
	}
	status := 0
	if response != nil {
		status = response.StatusCode
	}
	// A request without the name of an operation comes from prober, which sends nothing but
	// HEAD.
	l.requested(cmp.Or(awsmiddleware.GetOperationName(r.Context()), "HeadBucket"), status)
}

// bufferBody puts the body of a request, which is always small, into memory, so that it is
// sent in one piece with the headers. If headers and body were sent separately, a store
// might answer before it has read the body. After such an early answer, the SDK would close
// the body and break the connection, and the reason in the response would be lost.
func bufferBody(r *http.Request) error {
	if r.Body == nil || r.ContentLength <= 0 || r.ContentLength > maxBody {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(r.Body, r.ContentLength))
	if err != nil {
		return fmt.Errorf("reading the request's body: %w", err)
	}
	_ = r.Body.Close()
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	r.Body, err = r.GetBody()
	return err
}

// boundedBody ends after a limited number of bytes. It records the start of
// the body, and the first error while reading it.
type boundedBody struct {
	body   io.ReadCloser
	left   int
	x      *exchange
	closed bool
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	n, err := b.body.Read(p[:min(len(p), b.left)])
	b.left -= n
	if missing := maxStart - len(b.x.start); missing > 0 {
		b.x.start = append(b.x.start, p[:min(n, missing)]...)
	}
	if err != nil && err != io.EOF && !b.closed && b.x.bodyErr == nil {
		b.x.bodyErr = err
	}
	return n, err
}

func (b *boundedBody) Close() error {
	b.closed = true
	return b.body.Close()
}

package apiproxy

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/freeport"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// EndpointConfig configures an Endpoint.
type EndpointConfig struct {
	// Name is written to trace.Call.Endpoint.
	Name string
	// Target is the http or https URL of the server outside the cluster.
	Target   *url.URL
	Instance string
	Log      *trace.Log
	Decider  Decider
	// With is the proxy between the same controller and the API server, or nil. The endpoint and the
	// proxy With share one gate, so a delay applies to requests through either of them.
	With *Proxy
}

// Endpoint is a running proxy in front of a server outside the cluster. The endpoint serves plain
// HTTP on 127.0.0.1 and requires no credentials. The target server checks the credentials; it
// receives signed requests exactly as they were signed.
type Endpoint struct {
	*front
	target  *url.URL
	address string
}

// StartEndpoint serves on a free port of 127.0.0.1 until Stop is called or ctx ends.
func StartEndpoint(ctx context.Context, c EndpointConfig) (*Endpoint, error) {
	if c.Target == nil || c.Target.Host == "" || (c.Target.Scheme != "http" && c.Target.Scheme != "https") {
		return nil, fmt.Errorf("endpoint %s: the target %v is not an http or https URL", c.Name, c.Target)
	}
	if c.Name == "" {
		return nil, errors.New("starting an endpoint: EndpointConfig.Name is empty; set it")
	}
	l, err := freeport.Listen(0)
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", c.Name, err)
	}
	e := &Endpoint{front: newFront(ctx, c.Log, c.Decider, c.Instance), target: c.Target, address: l.Addr().String()}
	e.endpoint = c.Name
	if c.With != nil {
		e.gate = c.With.gate
	}
	h2, h1 := newTransport(nil, true), newTransport(nil, false)
	e.transport, e.upgrades = h2, h1
	e.idle = func() { h2.CloseIdleConnections(); h1.CloseIdleConnections() }
	e.serve(l, func() *http.Server { return &http.Server{} }, e.handle)
	return e, nil
}

// URL returns the address of the endpoint.
func (e *Endpoint) URL() *url.URL {
	return &url.URL{Scheme: "http", Host: e.address, Path: e.target.Path}
}

// Activity returns the endpoint's current activity. It has no streams.
func (e *Endpoint) Activity() Activity { return e.activity() }

func (e *Endpoint) handle(w http.ResponseWriter, r *http.Request) {
	a := asked{verb: strings.ToLower(r.Method), upgrade: isUpgrade(r)}
	x := &exchange{front: e.front, w: w, r: r, asked: a, call: e.begin(r, a), began: time.Now()}
	defer e.end(a)
	if !x.enter() {
		return
	}
	if a.upgrade {
		x.upgrade(e.location(r), r.Host)
		return
	}
	ctx, cancel := x.forwardContext()
	defer cancel()
	resp, err := e.transport.RoundTrip(x.outgoing(ctx, e.location(r), r.Host))
	if err != nil {
		x.unreachable(err)
	}
	defer resp.Body.Close()
	if x.action.special() {
		x.finish(resp)
		return
	}
	x.relay(resp)
}

// location returns the request's URL at the target. The URL has Opaque set, which net/http sends
// byte for byte, because the path and the query may be signed.
func (e *Endpoint) location(r *http.Request) *url.URL {
	path := r.RequestURI
	if !strings.HasPrefix(path, "/") {
		path = r.URL.RequestURI() // the client treats the endpoint as a forward proxy
	}
	path, query, has := strings.Cut(path, "?")
	to := &url.URL{Scheme: e.target.Scheme, Host: e.target.Host, Opaque: path, RawQuery: query, ForceQuery: has && query == ""}
	if strings.HasPrefix(path, "//") {
		// In Opaque, the text after // would be treated as a host.
		to.Opaque = ""
		to.Path, to.RawPath = r.URL.Path, r.URL.RawPath
	}
	return to
}

// s3Codes maps the HTTP status codes of injected errors to S3's error codes.
var s3Codes = map[int32]string{409: "OperationAborted", 429: "TooManyRequests", 500: "InternalError", 503: "SlowDown"}

// endpointError encodes an error for the client: as XML if the client signs requests as
// S3 clients do, otherwise without a body.
func endpointError(r *http.Request, s *metav1.Status) (contentType string, body []byte) {
	isS3 := strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") || r.URL.Query().Has("X-Amz-Signature")
	if !isS3 || r.Method == http.MethodHead {
		return "", nil
	}
	code := s3Codes[s.Code]
	if code == "" {
		code = "InternalError"
	}
	body, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: code, Message: s.Message})
	if err != nil {
		return "", nil
	}
	return "application/xml", append([]byte(xml.Header), body...)
}

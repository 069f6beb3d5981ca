// Package apiproxy is a proxy between one instance of a controller and the API server, with its own
// certificate and token. The proxy records every request and forwards it unchanged, and it can
// apply faults to individual requests and to watches.
//
//	controller ──TLS, HTTP/2 or 1.1──▶ gate ─▶ Decider ─▶ API server
//	     ▲                                                    │
//	     └─── events: straight on, or held in order ◀── watch ┘
//
// Everything that the proxy does to the controller could also happen in a real cluster. The proxy
// delays all watches of a type and keeps the order of their events, never drops an event from a
// stream that continues, and serves an older state only to clients that accept any state.
package apiproxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/koboshi-dev/koboshi/internal/freeport"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Config configures a proxy.
type Config struct {
	// Upstream holds the address of the API server and the controller's identity at
	// that server: a token, a certificate or an impersonation.
	Upstream *rest.Config
	// Instance is written to each entry of the trace.
	Instance string
	// Log records requests and events; nil records nothing.
	Log *trace.Log
	// Decider applies faults; nil applies none.
	Decider Decider
	// OldServer makes the proxy behave like an API server without the WatchList feature: it
	// refuses watches that request initial events. Clients of an old server list first;
	// client-go lists with resourceVersion=0.
	OldServer bool
}

// Proxy is a running proxy.
type Proxy struct {
	*front
	upstream  *upstream
	oldServer bool
	// impersonates reports whether Upstream impersonates the controller's identity.
	impersonates bool
	address      string
	token        string
	ca           []byte

	mu      sync.Mutex
	streams map[*stream]struct{}
	hold    []func(trace.Target) bool
	marks   map[string]uint64
	past    *Past
}

// Start serves on a free port of 127.0.0.1 until Stop is called or ctx ends.
func Start(ctx context.Context, c Config) (*Proxy, error) {
	if c.Upstream == nil {
		return nil, errors.New("starting the proxy: no API server is given; set Config.Upstream")
	}
	up, err := connect(c.Upstream)
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	certificate, ca, err := identity()
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	l, err := freeport.Listen(0)
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	token := make([]byte, 32)
	rand.Read(token)
	p := &Proxy{
		front:        newFront(ctx, c.Log, c.Decider, c.Instance),
		upstream:     up,
		oldServer:    c.OldServer,
		impersonates: c.Upstream.Impersonate.UserName != "",
		address:      l.Addr().String(),
		token:        hex.EncodeToString(token),
		ca:           ca,
		streams:      map[*stream]struct{}{},
		marks:        map[string]uint64{},
	}
	p.transport, p.upgrades, p.idle = up.requests, up.upgrades, up.idle
	p.serve(l, func() *http.Server {
		return &http.Server{
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
			HTTP2: &http.HTTP2Config{
				MaxConcurrentStreams:          1000, // a manager may watch very many types
				MaxReceiveBufferPerConnection: 4<<20 - 1,
				MaxReceiveBufferPerStream:     4<<20 - 1,
			},
		}
	}, p.handle)
	return p, nil
}

// Kubeconfig returns a kubeconfig for clients of the proxy.
func (p *Proxy) Kubeconfig() ([]byte, error) {
	const name = "koboshi-proxy"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + p.address, CertificateAuthorityData: p.ca}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: p.token}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	out, err := clientcmd.Write(*c)
	if err != nil {
		return nil, fmt.Errorf("writing the proxy's kubeconfig: %w", err)
	}
	return out, nil
}

// webSocketToken is the prefix of the subprotocol that carries the token of clients in
// browsers, which cannot set headers.
const webSocketToken = "base64url.bearer.authorization.k8s.io."

// admit reports whether the request carries the proxy's token, and removes that token.
// Later, the transport adds the credentials of the controller's identity.
func (p *Proxy) admit(r *http.Request) bool {
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	r.Header.Del("Authorization")
	if protocols := r.Header.Get("Sec-Websocket-Protocol"); given == "" && protocols != "" {
		var rest []string
		for _, protocol := range strings.Split(protocols, ",") {
			if encoded, ok := strings.CutPrefix(strings.TrimSpace(protocol), webSocketToken); ok {
				decoded, _ := base64.RawURLEncoding.DecodeString(encoded)
				given = string(decoded)
				continue
			}
			rest = append(rest, protocol)
		}
		r.Header.Set("Sec-Websocket-Protocol", strings.Join(rest, ","))
	}
	return subtle.ConstantTimeCompare([]byte(given), []byte(p.token)) == 1
}

func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	if !p.admit(r) {
		refuse(w, status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"))
		return
	}
	a := understand(r)
	x := &exchange{front: p.front, w: w, r: r, asked: a, call: p.begin(r, a), began: time.Now()}
	defer p.end(a)
	if p.impersonates && asksToImpersonate(r.Header) {
		// The proxy authenticates as the impersonator, so the server would check the impersonator's
		// permission to impersonate others instead of the identity's permission.
		x.sendStatus(status(http.StatusForbidden, metav1.StatusReasonForbidden,
			"koboshi already uses impersonation for this identity, so the identity cannot impersonate others; give it its own token"), 0)
		return
	}
	if !x.enter() {
		return
	}
	switch {
	case a.upgrade:
		x.upgrade(p.location(r.URL), p.upstream.url.Host)
	case a.watch:
		p.watch(x)
	default:
		p.request(x)
	}
}

// request forwards any request except a watch or an upgrade.
func (p *Proxy) request(x *exchange) {
	ctx, cancel := x.forwardContext()
	defer cancel()
	var resp *http.Response
	if x.asked.verb == "list" {
		p.unmark(x)
		resp = p.listPast(x)
	}
	if resp == nil {
		var err error
		if resp, err = p.transport.RoundTrip(x.outgoing(ctx, p.location(x.r.URL), p.upstream.url.Host)); err != nil {
			x.unreachable(err)
		}
	}
	defer resp.Body.Close()
	if x.action.special() && !x.asked.stream {
		x.finish(resp)
		return
	}
	if x.action.Drop {
		x.call.Lost = true
		x.fail("")
	}
	x.relay(resp)
}

// location returns the URL of a request at the API server; the server's own URL may include
// a path.
func (p *Proxy) location(u *url.URL) *url.URL {
	to := *u
	to.Scheme, to.Host = p.upstream.url.Scheme, p.upstream.url.Host
	if prefix := strings.TrimSuffix(p.upstream.url.Path, "/"); prefix != "" {
		to.Path = prefix + to.Path
		if to.RawPath != "" {
			to.RawPath = prefix + to.RawPath
		}
	}
	return &to
}

// unreachable breaks the client's connection when the server gave no answer. No error response is
// sent, because a client of a real API server would get none either.
func (x *exchange) unreachable(err error) {
	if x.r.Context().Err() != nil {
		x.call.Lost = true
		x.fail("the client disconnected")
	}
	x.fail(fmt.Sprintf("no response: %v", err))
}

func asksToImpersonate(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

func refuse(w http.ResponseWriter, s *metav1.Status) {
	contentType, body := encodeStatus(s, false)
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(body)
}

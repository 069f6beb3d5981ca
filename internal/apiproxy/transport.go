package apiproxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
)

// upstream connects to the API server.
type upstream struct {
	url      *url.URL
	requests http.RoundTripper
	upgrades http.RoundTripper
	idle     func()
}

// connect creates separate transports: client-go shares its transports between all
// clients with the same configuration, so a shared transport could not be closed.
func connect(c *rest.Config) (*upstream, error) {
	base, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	security, err := rest.TLSConfigFor(c)
	if err != nil {
		return nil, fmt.Errorf("configuring TLS to the API server: %w", err)
	}
	h2, h1 := newTransport(security, true), newTransport(security, false)
	for _, t := range []*http.Transport{h2, h1} {
		if c.Dial != nil {
			t.DialContext = c.Dial
		}
		t.Proxy = c.Proxy
	}
	u := &upstream{url: base, idle: func() { h2.CloseIdleConnections(); h1.CloseIdleConnections() }}
	var requests http.RoundTripper = h2
	if c.Transport != nil {
		requests = c.Transport
	}
	if u.requests, err = rest.HTTPWrappersForConfig(c, requests); err != nil {
		return nil, fmt.Errorf("configuring credentials for the API server: %w", err)
	}
	if u.upgrades, err = rest.HTTPWrappersForConfig(c, h1); err != nil {
		return nil, fmt.Errorf("configuring credentials for the API server: %w", err)
	}
	return u, nil
}

func newTransport(security *tls.Config, h2 bool) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(h2)
	t := &http.Transport{
		DialContext:     (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig: security.Clone(),
		Protocols:       &protocols,
		// The client decides about compression: it must get a compressed answer
		// only if its request allows that.
		DisableCompression:    true,
		MaxIdleConnsPerHost:   100,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		WriteBufferSize:       16 << 10,
		ReadBufferSize:        16 << 10,
	}
	if h2 {
		// As in client-go's transports: a connection that a network has dropped silently would
		// otherwise keep its watches open until the kernel gives up.
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	}
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil // Protocols selects the protocol
		if t.TLSClientConfig.ClientSessionCache == nil {
			t.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(8)
		}
	}
	return t
}

package s3store

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

func dialer(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// tunnel starts a proxy that supports CONNECT and directs every connection to one address.
func tunnel(t *testing.T, to string, seen *atomic.Int32) *url.URL {
	t.Helper()
	server := faultserver.Start(t, faultserver.Behind(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		there, err := net.Dial("tcp", to)
		if r.Method != http.MethodConnect || err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		here, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _, _ = here.Close(), there.Close() }()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, bufio.NewReader(buffered)) }()
		_, _ = io.Copy(here, there)
	})))
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestStoreBehindAProxyIsReachedThroughIt(t *testing.T) {
	server := faultserver.Start(t, faultserver.TLS(faultserver.Good))
	var seen atomic.Int32
	proxy := tunnel(t, strings.TrimPrefix(server.URL, "https://"), &seen)
	c := configAt(t, server)
	// The guard's list does not need the proxy's own address, because that address comes
	// from the environment.
	guard, err := egress.New([]string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	c.Guard, c.Endpoint.Host = guard, "localhost:1"
	store := newStore(c, http.ProxyURL(proxy))
	defer store.Close()
	const probes = 6
	for range probes {
		if r := store.Probe(t.Context(), "photos"); !r.Succeeded() {
			t.Fatalf("%+v", r)
		}
	}
	// A connection becomes free a moment after the response has arrived, so a probe sometimes
	// opens another tunnel.
	if n := seen.Load(); n < 1 || n > 3 || server.Count() != probes {
		t.Errorf("%d tunnels, %d requests", n, server.Count())
	}
}

func TestProxyIsNoWayAroundTheGuard(t *testing.T) {
	var seen atomic.Int32
	proxy := tunnel(t, "127.0.0.1:1", &seen)
	for _, tc := range []struct {
		scheme, host string
		allowed      []string
		want         Reason
	}{
		{"https", "169.254.169.254", nil, ReasonEndpointForbidden},
		{"http", "169.254.169.254", nil, ReasonEndpointForbidden},
		{"https", "2852039166", nil, ReasonEndpointForbidden},
		{"https", "localhost", nil, ReasonEndpointForbidden},
		{"https", "localhost", []string{"*"}, ReasonEndpointForbidden},
		{"https", "s3.example.org", []string{"s3.example.com"}, ReasonEndpointForbidden},
		// The store has the address of the proxy, which the guard does not allow.
		{"http", proxy.Host, nil, ReasonEndpointForbidden},
	} {
		guard, err := egress.New(tc.allowed)
		if err != nil {
			t.Fatal(err)
		}
		store := newStore(Config{
			Endpoint: &url.URL{Scheme: tc.scheme, Host: tc.host}, Region: "us-east-1", PathStyle: true, Guard: guard,
			Credentials: Credentials{AccessKeyID: testKeyID, SecretAccessKey: testSecret}, Limiter: NewLimiter(1e6, 16),
		}, http.ProxyURL(proxy))
		for name, got := range outcomes(t, store, plenty) {
			if got.Reason != tc.want {
				t.Errorf("%s://%s, %s: %+v", tc.scheme, tc.host, name, got)
			}
		}
		store.Close()
	}
	if n := seen.Load(); n != 0 {
		t.Errorf("the proxy was asked %d times", n)
	}
}

func TestProxysAddressIsWhatIsDialled(t *testing.T) {
	for in, want := range map[string]string{
		"http://proxy.example:3128": "proxy.example:3128",
		"http://proxy.example":      "proxy.example:80",
		"https://proxy.example":     "proxy.example:443",
		"socks5://proxy.example":    "proxy.example:1080",
		"http://[::1]:3128":         "[::1]:3128",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		var dialled string
		transport := &http.Transport{Proxy: http.ProxyURL(u), DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = address
			return nil, io.EOF
		}}
		if _, err := (&http.Client{Transport: transport}).Get("http://s3.example.com"); err == nil {
			t.Errorf("%s: an answer", in)
		}
		if got := proxyAddress(u); got != want || got != dialled {
			t.Errorf("%s: got %s, net/http dials %s, want %s", in, got, dialled, want)
		}
	}
}

package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

// outcomes makes the store send every kind of request, each within the time
// limit, and returns the results by the name of the operation.
func outcomes(t *testing.T, s *Store, timeout time.Duration) map[string]Result {
	t.Helper()
	within := func(do func(context.Context) Result) Result {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		return do(ctx)
	}
	return map[string]Result{
		"probe":  within(func(ctx context.Context) Result { return s.Probe(ctx, "photos") }),
		"check":  within(s.Check),
		"canary": within(func(ctx context.Context) Result { return s.Canary(ctx, "photos", "canary") }),
		"call": within(func(ctx context.Context) Result {
			var e *Error
			if errors.As(s.call(ctx, createBucket), &e) {
				return Result{Reason: e.Reason, Message: e.Message, RetryAfter: e.RetryAfter}
			}
			return Result{Reason: ReasonSucceeded}
		}),
	}
}

// plenty is enough time for everything that does not hang.
const plenty = 10 * time.Second

func expect(t *testing.T, s *Store, timeout time.Duration, reason Reason, message string) {
	t.Helper()
	for name, got := range outcomes(t, s, timeout) {
		if got.Reason != reason || got.Message != message || got.Latency != 0 {
			t.Errorf("%s: got %+v, want %s: %s", name, got, reason, message)
		}
		assertNoSecret(t, fmt.Sprintf("%+v", got))
	}
}

func TestFailureToConnectIsClassified(t *testing.T) {
	t.Run("refused connection", func(t *testing.T) {
		server := faultserver.Start(t)
		server.Down()
		expect(t, storeAt(t, server), plenty, ReasonEndpointUnreachable, "the endpoint refused the connection")
	})
	t.Run("reset connection", func(t *testing.T) {
		server := faultserver.Start(t)
		server.Script(faultserver.Rule{Fault: faultserver.Reset()})
		expect(t, storeAt(t, server), plenty, ReasonEndpointUnreachable, "the connection to the endpoint failed")
	})
	t.Run("name that does not resolve", func(t *testing.T) {
		c := configAt(t, faultserver.Start(t))
		c.Endpoint = &url.URL{Scheme: "http", Host: "no-such-host.invalid"}
		c.Guard = nil
		for name, got := range outcomes(t, storeFrom(t, c), plenty) {
			// Without a network, a resolver may not answer at all.
			if got.Reason != ReasonEndpointUnreachable && got.Reason != ReasonTimeout {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
	for certificate, message := range map[faultserver.Certificate]string{
		faultserver.UnknownAuthority: "the endpoint's certificate is signed by an unknown authority",
		faultserver.Expired:          "the endpoint's certificate has expired or is not yet valid",
		faultserver.WrongHost:        "the endpoint's certificate is for another host",
		faultserver.PlainHTTP:        "the endpoint does not speak TLS",
	} {
		t.Run(message, func(t *testing.T) {
			server := faultserver.Start(t, faultserver.TLS(certificate))
			expect(t, storeAt(t, server), plenty, ReasonTLSError, message)
			if server.Count() != 0 {
				t.Error("a signed request was sent anyway")
			}
		})
	}
	t.Run("server that speaks another protocol", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n"))
				_ = c.Close()
			}
		}()
		c := configAt(t, faultserver.Start(t))
		c.Endpoint.Host = l.Addr().String()
		for name, got := range outcomes(t, storeFrom(t, c), plenty) {
			if got.Reason != ReasonEndpointUnreachable {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
	t.Run("http to a TLS server", func(t *testing.T) {
		server := faultserver.Start(t, faultserver.TLS(faultserver.Good))
		c := configAt(t, server)
		c.Endpoint.Scheme = "http"
		for name, got := range outcomes(t, storeFrom(t, c), plenty) {
			// The server reports the error and closes the connection, and the client may
			// notice the close first.
			if got.Reason != ReasonUnexpectedResponse && got.Reason != ReasonEndpointUnreachable {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
}

func TestGoodCertificateIsAccepted(t *testing.T) {
	server := faultserver.Start(t, faultserver.TLS(faultserver.Good))
	if got := storeAt(t, server).Probe(t.Context(), "photos"); !got.Succeeded() {
		t.Errorf("%+v", got)
	}
}

func TestHangEndsAtTheDeadline(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rules []faultserver.Rule
	}{
		{"no answer at all", []faultserver.Rule{{Fault: faultserver.Hang()}}},
		{"no response to the request for the reason", []faultserver.Rule{
			{Method: "HEAD", Fault: faultserver.Status(403)}, {Fault: faultserver.Hang()}}},
		{"a body that never ends", []faultserver.Rule{
			{Method: "HEAD", Fault: faultserver.Status(403)}, {Fault: faultserver.HangInBody(403)}}},
		{"a good answer whose body never ends", []faultserver.Rule{
			{Method: "HEAD", Fault: faultserver.Status(403)}, {Fault: faultserver.SlowBody(200, 5*time.Millisecond)}}},
		{"a body that comes byte by byte", []faultserver.Rule{
			{Method: "HEAD", Fault: faultserver.Status(403)}, {Fault: faultserver.SlowBody(403, 5*time.Millisecond)}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := faultserver.Start(t)
			server.Script(tc.rules...)
			start := time.Now()
			for name, got := range outcomes(t, storeAt(t, server), time.Second) {
				if name == "canary" && strings.Contains(tc.name, "good") {
					continue // a write is complete when the response headers have arrived
				}
				if got.Reason != ReasonTimeout || got.Message != "the store did not answer in time" {
					t.Errorf("%s: %+v", name, got)
				}
			}
			if took := time.Since(start); took > 25*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestCallerThatGivesUpSaysNothingOfTheStore(t *testing.T) {
	server := faultserver.Start(t)
	server.Script(faultserver.Rule{Fault: faultserver.Hang()})
	store := storeAt(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan Result, 1)
	go func() { ended <- store.Probe(ctx, "photos") }()
	await(t, func() bool { return server.Count() == 1 })
	cancel()
	if got := <-ended; got.Reason != ReasonCanceled || got.Reason.Connection() || got.Reason.Terminal() {
		t.Errorf("%+v", got)
	}
	if err := store.call(ctx, createBucket); ReasonOf(err) != ReasonCanceled {
		t.Errorf("%v", err)
	}
}

// await waits until the condition is true.
func await(t *testing.T, so func() bool) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(plenty)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the condition does not become true")
		}
	}
}

func TestForbiddenAddressIsNotDialled(t *testing.T) {
	const special = "loopback, link-local, multicast or metadata"
	for _, tc := range []struct {
		name, host string
		allowed    []string
	}{
		{"an address", "127.0.0.1", nil},
		{"a name that resolves to it", "localhost", nil},
		{"a name that resolves to it, in a list of suffixes", "localhost", []string{"*"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := faultserver.Start(t)
			c := configAt(t, server)
			guard, err := egress.New(tc.allowed)
			if err != nil {
				t.Fatal(err)
			}
			c.Guard, c.Endpoint.Host = guard, tc.host+":"+c.Endpoint.Port()
			for name, got := range outcomes(t, storeFrom(t, c), plenty) {
				if got.Reason != ReasonEndpointForbidden || !strings.Contains(got.Message, special) || !got.Reason.Terminal() {
					t.Errorf("%s: %+v", name, got)
				}
			}
			if n := server.Connections(); n != 0 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func TestRedirectToMetadataIsNeverFollowed(t *testing.T) {
	metadata := faultserver.Start(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := faultserver.Start(t)
		server.Script(faultserver.Rule{Fault: faultserver.Status(status, "Location", metadata.URL+"/latest/meta-data/")})
		for name, got := range outcomes(t, storeAt(t, server), plenty) {
			if got.Reason != ReasonUnexpectedResponse {
				t.Errorf("%d, %s: %+v", status, name, got)
			}
		}
	}
	if n := metadata.Connections(); n != 0 {
		t.Errorf("%d connections to the target of the redirects", n)
	}
}

func TestMissingCredentialsAreNotTheStoresFault(t *testing.T) {
	for name, provider := range map[string]aws.CredentialsProvider{
		"none":  nil,
		"empty": Credentials{},
		"a provider that fails": aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("the token service said: " + testSecret)
		}),
		"a provider that takes too long": aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			<-ctx.Done()
			return aws.Credentials{}, ctx.Err()
		}),
	} {
		t.Run(name, func(t *testing.T) {
			server := faultserver.Start(t)
			c := configAt(t, server)
			c.Credentials = provider
			expect(t, storeFrom(t, c), time.Second, ReasonCredentialsNotFound, "there are no credentials to sign requests with")
			if server.Count() != 0 {
				t.Error("a request was sent")
			}
		})
	}
}

// If headers and body were sent separately, a store that answers as soon as it has the
// headers would answer before the body was sent, and the reason in the response would be
// lost.
func TestBodyLeavesInOnePieceWithTheHeaders(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	first := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		piece := make([]byte, 64<<10)
		n, _ := c.Read(piece)
		first <- string(piece[:n])
		_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 40\r\n\r\n<Error><Code>AccessDenied</Code></Error>")
	}()
	c := configAt(t, faultserver.Start(t))
	c.Endpoint.Host = l.Addr().String()
	got := storeFrom(t, c).Canary(t.Context(), "photos", "canary")
	_, body, _ := strings.Cut(<-first, "\r\n\r\n")
	if got.Reason != ReasonAccessDenied || len(body) == 0 {
		t.Errorf("%+v; with the headers came %d bytes of the body", got, len(body))
	}
}

func TestEndlessBodyIsNotReadToItsEnd(t *testing.T) {
	for _, tc := range []struct {
		status int
		ask    func(*Store) Reason
	}{
		{403, func(s *Store) Reason { return s.Probe(t.Context(), "photos").Reason }},
		{200, func(s *Store) Reason { return s.Canary(t.Context(), "photos", "canary").Reason }},
		{403, func(s *Store) Reason { return s.Check(t.Context()).Reason }},
		{500, func(s *Store) Reason { return ReasonOf(s.call(t.Context(), createBucket)) }},
	} {
		var written atomic.Int64
		done := make(chan struct{})
		end := sync.OnceFunc(func() { close(done) })
		server := faultserver.Start(t, faultserver.Behind(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(tc.status)
			if r.Method == http.MethodHead {
				return
			}
			defer end()
			for junk := bytes.Repeat([]byte("<a>"), 1<<12); written.Load() < 1<<30; {
				n, err := w.Write(junk)
				written.Add(int64(n))
				if err != nil {
					return
				}
			}
		})))
		server.Script(faultserver.Rule{Method: "DELETE", Fault: faultserver.Status(204)})
		store := storeAt(t, server)
		reason := tc.ask(store)
		<-done
		// The limit includes the data in the buffers at both ends.
		if got := written.Load(); got > maxSmallBody+(32<<20) {
			t.Errorf("%d: %s after %d bytes", tc.status, reason, got)
		}
	}
}

func TestSigningTimeIsOursAndNotTheStores(t *testing.T) {
	dates := make(chan string, 4)
	server := faultserver.Start(t, faultserver.Behind(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dates <- r.Header.Get("X-Amz-Date")
		faultserver.S3Error(403, "RequestTimeTooSkewed", "Date", "Fri, 20 Nov 2020 12:00:00 GMT")(nil).ServeHTTP(w, r)
	})))
	store := storeAt(t, server)
	for range 2 {
		if got := store.Probe(t.Context(), "photos"); got.Reason != ReasonClockSkew {
			t.Errorf("%+v", got)
		}
	}
	for range 4 {
		at, err := time.Parse("20060102T150405Z", <-dates)
		if err != nil || time.Since(at) > time.Hour {
			t.Errorf("signed at %v, %v", at, err)
		}
	}
}

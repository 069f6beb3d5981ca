package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAnswerIsClassified(t *testing.T) {
	noCall := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	for _, tc := range []struct {
		name      string
		head, get http.HandlerFunc
		want      Reason
		message   string
		calls     int
		retry     time.Duration
	}{
		{"200 is success and needs one request",
			status(200), noCall, ReasonSucceeded, "the store answered for the bucket", 1, 0},
		{"403 explained by the body as a wrong secret",
			status(403), s3Error(403, "SignatureDoesNotMatch"), ReasonInvalidCredentials,
			"the store does not accept the credentials (SignatureDoesNotMatch)", 2, 0},
		{"403 explained by the body as an unknown key",
			status(403), s3Error(403, "InvalidAccessKeyId"), ReasonInvalidCredentials, "", 2, 0},
		{"403 explained by the body as a missing permission",
			status(403), s3Error(403, "AccessDenied"), ReasonAccessDenied, "", 2, 0},
		{"403 without a body is access denied, for want of a better word",
			status(403), status(403), ReasonAccessDenied, "the store denied access to the bucket (HTTP status 403)", 2, 0},
		{"403 with a code nobody knows repeats nothing of it",
			status(403), s3Error(403, testKeyID), ReasonAccessDenied, "the store denied access to the bucket (HTTP status 403)", 2, 0},
		{"404 with its code is a missing bucket",
			status(404), s3Error(404, "NoSuchBucket"), ReasonBucketNotFound, "the store has no such bucket (NoSuchBucket)", 2, 0},
		{"404 without a body says nothing of the bucket",
			status(404), status(404), ReasonUnexpectedResponse, "", 2, 0},
		{"404 from a web server says nothing of the bucket",
			status(404), text(404, "<html>not here</html>"), ReasonUnexpectedResponse, "", 2, 0},
		{"404 for an unknown key is a matter of credentials",
			status(404), s3Error(404, "InvalidAccessKeyId"), ReasonInvalidCredentials, "", 2, 0},
		{"301 with the region's name says where the bucket is",
			status(301, "X-Amz-Bucket-Region", "eu-west-3"), s3Error(301, "PermanentRedirect", "X-Amz-Bucket-Region", "eu-west-3"),
			ReasonWrongRegion, "the bucket is in region eu-west-3 (PermanentRedirect)", 2, 0},
		{"301 with nonsense for a region does not repeat it",
			status(301, "X-Amz-Bucket-Region", testKeyID), s3Error(301, "PermanentRedirect", "X-Amz-Bucket-Region", testKeyID),
			ReasonWrongRegion, "the region or the endpoint is not the bucket's (PermanentRedirect)", 2, 0},
		{"301 of a web server is not followed",
			status(301, "Location", "http://127.0.0.1:1/elsewhere"), status(301, "Location", "http://127.0.0.1:1/elsewhere"),
			ReasonUnexpectedResponse, "", 2, 0},
		{"400 for a signature of another region",
			status(400), s3Error(400, "AuthorizationHeaderMalformed"), ReasonWrongRegion, "", 2, 0},
		{"403 for a clock that is off",
			status(403), s3Error(403, "RequestTimeTooSkewed"), ReasonClockSkew, "", 2, 0},
		{"503 asks for patience and is not asked again",
			status(503, "Retry-After", "120"), noCall, ReasonThrottled,
			"the store asked for fewer requests (HTTP status 503)", 1, 2 * time.Minute},
		{"429 with an endless Retry-After is cut",
			status(429, "Retry-After", "99999999999999999999"), noCall, ReasonThrottled, "", 1, 0},
		{"429 with a long Retry-After is cut",
			status(429, "Retry-After", "86400"), noCall, ReasonThrottled, "", 1, MaxRetryAfter},
		{"SlowDown found only in the body",
			status(400), s3Error(400, "SlowDown", "Retry-After", "3"), ReasonThrottled, "", 2, 3 * time.Second},
		{"500 is the store's failure",
			status(500), s3Error(500, "InternalError"), ReasonServerError, "the store failed (InternalError)", 2, 0},
		{"502 of a proxy is the store's failure",
			status(502), text(502, "bad gateway"), ReasonServerError, "the store failed (HTTP status 502)", 2, 0},
		{"501 is unsupported",
			status(501), s3Error(501, "NotImplemented"), ReasonUnsupported, "", 2, 0},
		{"a store without HEAD that lists the bucket is healthy",
			status(405), emptyList, ReasonSucceeded, "", 2, 0},
		{"200 with a body that is not S3's, after a failed HEAD, is no success",
			status(404), text(200, "<html>welcome"), ReasonUnexpectedResponse, "", 2, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := &fakeStore{head: tc.head, get: tc.get}
			target := store.start(t)
			got := NewS3().Probe(t.Context(), target)
			if got.Reason != tc.want {
				t.Errorf("reason %s (%s), want %s", got.Reason, got.Message, tc.want)
			}
			if tc.message != "" && got.Message != tc.message {
				t.Errorf("message %q, want %q", got.Message, tc.message)
			}
			if got.RetryAfter != tc.retry {
				t.Errorf("retry after %v, want %v", got.RetryAfter, tc.retry)
			}
			if got.Latency <= 0 {
				t.Errorf("latency %v of a store that answered", got.Latency)
			}
			if calls := store.seen(); len(calls) != tc.calls {
				t.Errorf("requests %q, want %d of them", calls, tc.calls)
			}
			assertNoSecret(t, fmt.Sprintf("%+v", got))
		})
	}
}

func assertNoSecret(t *testing.T, s string) {
	t.Helper()
	for _, secret := range []string{testSecret, testKeyID, "REQ-", "photos"} {
		if strings.Contains(s, secret) {
			t.Errorf("%q in %q", secret, s)
		}
	}
}

func TestRequestsAreSignedAndPathStyle(t *testing.T) {
	var got *http.Request
	store := &fakeStore{head: func(_ http.ResponseWriter, r *http.Request) { got = r }}
	target := store.start(t)
	target.Endpoint.Path = "/storage/v1/s3"
	target.Region = "eu-central-1"
	if r := NewS3().Probe(t.Context(), target); !r.Succeeded() {
		t.Fatal(r.Message)
	}
	if got.URL.Path != "/storage/v1/s3/photos" {
		t.Errorf("path %s", got.URL.Path)
	}
	auth := got.Header.Get("Authorization")
	if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential="+testKeyID+"/") || !strings.Contains(auth, "/eu-central-1/s3/") {
		t.Errorf("authorization %q", auth)
	}
}

func TestFailureToAnswerIsClassified(t *testing.T) {
	t.Run("refused connection", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		expect(t, targetFor(t, "http://"+address), ReasonEndpointUnreachable, "the endpoint refused the connection")
	})
	t.Run("closed connection", func(t *testing.T) {
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
				_ = c.Close()
			}
		}()
		expect(t, targetFor(t, "http://"+l.Addr().String()), ReasonEndpointUnreachable, "the connection to the endpoint failed")
	})
	t.Run("certificate of an unknown authority", func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		server.StartTLS()
		defer server.Close()
		expect(t, targetFor(t, server.URL), ReasonTLSError, "the endpoint's certificate is signed by an unknown authority")
	})
	t.Run("https to a plain http server", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		target := targetFor(t, strings.Replace(server.URL, "http:", "https:", 1))
		expect(t, target, ReasonTLSError, "the endpoint does not speak TLS")
	})
	t.Run("http to a TLS server", func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		server.StartTLS()
		defer server.Close()
		target := targetFor(t, strings.Replace(server.URL, "https:", "http:", 1))
		if got := NewS3().Probe(t.Context(), target); got.Reason != ReasonUnexpectedResponse {
			t.Errorf("%+v", got)
		}
	})
}

func expect(t *testing.T, target Target, reason Reason, message string) {
	t.Helper()
	got := NewS3().Probe(t.Context(), target)
	if got.Reason != reason || got.Message != message || got.Latency != 0 {
		t.Errorf("got %+v, want %s: %s", got, reason, message)
	}
}

func TestHangEndsAtTheDeadline(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, tc := range []struct {
		name      string
		head, get http.HandlerFunc
	}{
		{"no answer to HEAD", hang, hang},
		{"no answer to the question why", status(403), hang},
		{"a body that never ends", status(403), func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error>")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			target := (&fakeStore{head: tc.head, get: tc.get}).start(t)
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			start := time.Now()
			got := NewS3().Probe(ctx, target)
			if got.Reason != ReasonTimeout {
				t.Errorf("%+v", got)
			}
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestEndlessErrorBodyIsNotReadToItsEnd(t *testing.T) {
	store := &fakeStore{head: status(403), get: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		junk := bytes.Repeat([]byte("<a>"), 1<<16)
		for {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	}}
	if got := NewS3().Probe(t.Context(), store.start(t)); got.Reason != ReasonAccessDenied {
		t.Errorf("%+v", got)
	}
}

func TestCredentialsNeverPrint(t *testing.T) {
	c := Credentials{AccessKeyID: testKeyID, SecretAccessKey: testSecret}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		_, _ = fmt.Fprintf(&out, verb, c)
		_, _ = fmt.Fprintf(&out, verb, &c)
		_, _ = fmt.Fprintf(&out, verb, Target{Credentials: c})
	}
	_ = json.NewEncoder(&out).Encode(map[string]any{"c": c, "p": &c})
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "c", c, "p", &c)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "c", c, "p", &c)
	for _, secret := range []string{testKeyID, testSecret, fmt.Sprintf("%x", testSecret)} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q in %s", secret, out.String())
		}
	}
}

func TestParseEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:9000":              "http://127.0.0.1:9000",
		"https://s3.example.com/":            "https://s3.example.com",
		"https://x.example.com/storage/s3//": "https://x.example.com/storage/s3",
		"http://[::1]:9000":                  "http://[::1]:9000",
		"HTTP://host":                        "http://host",
	} {
		u, err := ParseEndpoint(in)
		if err != nil || u.String() != want {
			t.Errorf("%q: got %v, %v, want %s", in, u, err, want)
		}
	}
	for _, in := range []string{
		"", "host", "host:9000", "//host", "ftp://host", "http://", "http:///bucket", "http:host",
		"http://user@host", "http://user:pass@host", "http://host?x=1", "http://host#x", "http://host/?",
		"http://host:", "http://host:0", "http://host:65536", "http://host:http", "http://ho st", "http://host/\x00", "http://[::1",
	} {
		if u, err := ParseEndpoint(in); err == nil {
			t.Errorf("%q: got %s, want an error", in, u)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{"http://127.0.0.1:9000", "https://s3.example.com/a/b/", "http://u:p@h", "http://[::1%25lo]:1", "http://h:0", "http://h/%2f/", "http://h/..//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseEndpoint(s)
		if err != nil {
			if len(s) > 12 && strings.Contains(err.Error(), s) {
				t.Fatalf("error repeats its input: %v", err)
			}
			return
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" {
			t.Fatalf("%q accepted as %#v", s, u)
		}
		again, err := ParseEndpoint(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("%q gives %q, which gives %v, %v", s, u, again, err)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{"", "0", "5", "-5", "1e3", "99999999999999999999", "Fri, 20 Nov 2026 12:00:30 GMT", "Fri, 20 Nov 2020 12:00:30 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d := retryAfter(s, now); d < 0 || d > MaxRetryAfter {
			t.Fatalf("%q gives %v", s, d)
		}
	})
}

func TestRetryAfterTakesSecondsAndDates(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-7":                            0,
		"Fri, 20 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"Fri, 20 Nov 2026 11:00:30 GMT": 0,
		"Fri, 20 Nov 2027 12:00:30 GMT": MaxRetryAfter,
		"soon":                          0,
	} {
		if got := retryAfter(in, now); got != want {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
}

func TestEveryReasonHasASentenceAndEveryCodeAReason(t *testing.T) {
	for code, reason := range reasonOfCode {
		if sentence[reason] == "" {
			t.Errorf("%s: reason %s has no sentence", code, reason)
		}
	}
}

package faultserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const patience = 10 * time.Second

// clientOf returns a client that trusts the server, keeps no connections and follows no
// redirects.
func clientOf(t *testing.T, s *Server) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.RootCAs()}, DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send sends a request. It returns the response, its body, and the error from the
// request or from reading the body.
func send(t *testing.T, c *http.Client, method, url string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 the-signature")
	resp, err := c.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func TestRulesTakeTheRequestsTheySay(t *testing.T) {
	s := Start(t)
	s.Script(
		Rule{Method: "PUT", Path: "/photos", Query: "tagging", Fault: Status(501)},
		Rule{Method: "GET", Path: "/photos", Skip: 1, Times: 2, Fault: Status(503)},
		Rule{Method: "GET", Path: "/photos", Fault: Status(404)},
	)
	for _, tc := range []struct {
		method, path string
		want         int
	}{
		{"PUT", "/photos?tagging", 501},
		{"PUT", "/photos?versioning", 200},
		{"PUT", "/films?tagging", 200},
		{"GET", "/photos", 404}, // skipped by the second rule, taken by the third
		{"GET", "/photos", 503},
		{"GET", "/photos/a", 503},
		{"GET", "/photos", 404},
		{"HEAD", "/photos", 200},
	} {
		resp, _, err := send(t, clientOf(t, s), tc.method, s.URL+tc.path)
		if err != nil || resp.StatusCode != tc.want {
			t.Errorf("%s %s: %v, %v, want %d", tc.method, tc.path, resp, err, tc.want)
		}
	}
	s.Heal()
	if resp, _, err := send(t, clientOf(t, s), "GET", s.URL+"/photos"); err != nil || resp.StatusCode != 200 {
		t.Errorf("after Heal: %v, %v", resp, err)
	}
}

func TestRequestsAreRecordedWithoutHeaders(t *testing.T) {
	s := Start(t)
	_, _, _ = send(t, clientOf(t, s), "GET", s.URL+"/photos?list-type=2")
	_, _, _ = send(t, clientOf(t, s), "HEAD", s.URL+"/photos")
	want := []string{"GET /photos?list-type=2", "HEAD /photos"}
	if diff := cmp.Diff(want, s.Lines()); diff != "" {
		t.Error(diff)
	}
	if s.Count() != 2 || s.Connections() != 2 {
		t.Errorf("%d requests on %d connections", s.Count(), s.Connections())
	}
	s.Forget()
	if s.Count() != 0 || len(s.Requests()) != 0 || s.Connections() != 0 {
		t.Error("the requests are still recorded")
	}
}

func TestFaultsOfTheAnswer(t *testing.T) {
	s := Start(t)
	for _, tc := range []struct {
		name   string
		fault  Fault
		status int
		header string // Name: value
		body   string // a part of the body; empty means that there is no body
	}{
		{"403 without body", Status(403), 403, "", ""},
		{"301 with region", Status(301, "X-Amz-Bucket-Region", "eu-west-1"), 301, "X-Amz-Bucket-Region: eu-west-1", ""},
		{"S3 error", S3Error(403, "AccessDenied"), 403, "", "<Code>AccessDenied</Code>"},
		{"S3 error that repeats the signature", S3Error(403, "X"), 403, "", "the-signature"},
		{"throttled", Throttle("7"), 503, "Retry-After: 7", "SlowDown"},
		{"throttled for an unknown time", Throttle(""), 503, "Retry-After: ", "SlowDown"},
		{"garbage", Garbage(200), 200, "Content-Type: text/html", "It works!"},
		{"huge", HugeBody(200, 1<<20), 200, "", strings.Repeat("<Filler/>", 1000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.Heal()
			s.Script(Rule{Fault: tc.fault})
			resp, body, err := send(t, clientOf(t, s), "GET", s.URL+"/photos")
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tc.status {
				t.Errorf("status %d", resp.StatusCode)
			}
			if name, value, ok := strings.Cut(tc.header, ": "); ok && resp.Header.Get(name) != value {
				t.Errorf("%s: %q", name, resp.Header.Get(name))
			}
			if !strings.Contains(body, tc.body) || (tc.body == "" && body != "") {
				t.Errorf("body %.200q", body)
			}
		})
	}
}

func TestFaultsOfTheConnection(t *testing.T) {
	s := Start(t)
	timeout := func(err error) bool {
		var e net.Error
		return errors.As(err, &e) && e.Timeout()
	}
	for _, tc := range []struct {
		name  string
		fault Fault
		// limit is the time after which the client gives up. If the client should get the headers,
		// the limit leaves enough time for them.
		limit time.Duration
		// answered reports whether the client gets the headers.
		answered bool
		is       func(error) bool
	}{
		{"hang", Hang(), 200 * time.Millisecond, false, timeout},
		{"hang in the body", HangInBody(403), 2 * time.Second, true, timeout},
		{"slow body", SlowBody(200, 10*time.Millisecond), 2 * time.Second, true, timeout},
		{"truncated body", TruncatedBody(403), patience, true, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{"reset", Reset(), patience, false, func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		{"delay", Delay(time.Minute), 200 * time.Millisecond, false, timeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.Heal()
			s.Script(Rule{Fault: tc.fault})
			c := clientOf(t, s)
			c.Timeout = tc.limit
			resp, _, err := send(t, c, "GET", s.URL+"/photos")
			if (resp != nil) != tc.answered || !tc.is(err) {
				t.Errorf("got headers: %v; error: %v", resp != nil, err)
			}
		})
	}
}

func TestLostAnswerIsOfARequestThatWasCarriedOut(t *testing.T) {
	var done atomic.Int32
	s := Start(t, Behind(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { done.Add(1) })))
	s.Script(Rule{Fault: LoseAnswer()})
	if _, _, err := send(t, clientOf(t, s), "PUT", s.URL+"/photos"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
	if done.Load() != 1 {
		t.Errorf("the request was carried out %d times", done.Load())
	}
}

func TestCertificates(t *testing.T) {
	for _, tc := range []struct {
		certificate Certificate
		is          func(error) bool
	}{
		{Good, func(err error) bool { return err == nil }},
		{UnknownAuthority, func(err error) bool { var e x509.UnknownAuthorityError; return errors.As(err, &e) }},
		{Expired, func(err error) bool {
			var e x509.CertificateInvalidError
			return errors.As(err, &e) && e.Reason == x509.Expired
		}},
		{WrongHost, func(err error) bool { var e x509.HostnameError; return errors.As(err, &e) }},
		{PlainHTTP, func(err error) bool { return errors.Is(err, http.ErrSchemeMismatch) }},
	} {
		s := Start(t, TLS(tc.certificate))
		if _, _, err := send(t, clientOf(t, s), "GET", s.URL+"/photos"); !tc.is(err) {
			t.Errorf("certificate %d: %v", tc.certificate, err)
		}
	}
	s := Start(t, TLS(Good))
	pem, err := s.CAPEM()
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(pem) {
		t.Errorf("%s, %v", pem, err)
	}
}

func TestServerComesUpAgainAtItsAddress(t *testing.T) {
	s := Start(t)
	s.Script(Rule{Fault: Status(403)})
	for range 3 {
		s.Down()
		if _, _, err := send(t, clientOf(t, s), "GET", s.URL); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("down: %v", err)
		}
		s.Up()
		if resp, _, err := send(t, clientOf(t, s), "GET", s.URL); err != nil || resp.StatusCode != 403 {
			t.Errorf("up: %v, %v", resp, err)
		}
	}
}

func TestClosedConnectionEndsAndTheServerGoesOn(t *testing.T) {
	s := Start(t)
	address := strings.TrimPrefix(s.URL, "http://")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
	r := bufio.NewReader(c)
	if _, err := http.ReadResponse(r, nil); err != nil {
		t.Fatal(err)
	}
	s.CloseConnections()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if _, err := r.ReadByte(); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the connection is open: %v", err)
	}
	if _, _, err := send(t, clientOf(t, s), "GET", s.URL); err != nil {
		t.Error(err)
	}
}

func TestServerInFrontPassesRequestsOnAsTheyAre(t *testing.T) {
	store := Start(t, Behind(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.Host+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization")+" "+string(body))
	})))
	behind, err := url.Parse(store.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := Start(t, Before(behind))
	s.Script(Rule{Path: "/photos", Query: "lifecycle", Fault: S3Error(501, "NotImplemented")})

	_, body, err := send(t, clientOf(t, s), "GET", s.URL+"/photos/a%2Fb%20c?tagging&x=%2F")
	if want := "GET " + strings.TrimPrefix(s.URL, "http://") + " /photos/a%2Fb%20c?tagging&x=%2F AWS4-HMAC-SHA256 the-signature "; err != nil || body != want {
		t.Errorf("got %q, %v, want %q", body, err, want)
	}
	if resp, _, err := send(t, clientOf(t, s), "GET", s.URL+"/photos?lifecycle"); err != nil || resp.StatusCode != 501 {
		t.Errorf("%v, %v", resp, err)
	}
	store.Down()
	if _, _, err := send(t, clientOf(t, s), "GET", s.URL+"/photos"); err == nil {
		t.Error("there was an answer although the store is down")
	}
	if n := len(store.Requests()); n != 1 {
		t.Errorf("%d requests came through", n)
	}
}

// stopper is the TB of a test that has ended.
type stopper struct {
	*testing.T
	cleanups []func()
}

func (s *stopper) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func TestServerStopsWithTheTestThoughARequestHangs(t *testing.T) {
	ending := &stopper{T: t}
	s := Start(ending)
	s.Script(Rule{Fault: Hang()})
	ended := make(chan error, 1)
	go func() {
		resp, err := http.Post(s.URL, "text/plain", strings.NewReader("x"))
		if err == nil {
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	late := time.After(patience)
	for tick := time.NewTicker(time.Millisecond); s.Count() == 0; {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("no request arrived")
		}
	}
	for _, f := range ending.cleanups {
		f()
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the request was answered")
		}
	case <-late:
		t.Error("the request still hangs")
	}
}

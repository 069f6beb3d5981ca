package s3store

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

func TestRequestsAreSignedAndAddressed(t *testing.T) {
	for _, tc := range []struct {
		name             string
		pathStyle        bool
		host, path       string // of the endpoint
		bucket           string
		wantHost, wantAt string
	}{
		{"path style", true, "", "", "photos", "", "/photos"},
		{"path style below a path", true, "", "/storage/v1/s3", "photos", "", "/storage/v1/s3/photos"},
		{"path style with a dot", true, "", "", "my.photos", "", "/my.photos"},
		{"virtual host", false, "localhost", "", "photos", "photos.localhost", "/"},
		{"virtual host of an address is path style", false, "", "", "photos", "", "/photos"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := make(chan *http.Request, 2)
			server := faultserver.Start(t, faultserver.Behind(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r })))
			c := configAt(t, server)
			c.Endpoint.Path, c.Region, c.PathStyle = tc.path, "eu-central-1", tc.pathStyle
			if tc.host != "" {
				c.Endpoint.Host = tc.host + ":" + c.Endpoint.Port()
			}
			s := storeFrom(t, c)
			// Not every system resolves names below localhost.
			dialLocally(s, strings.TrimPrefix(server.URL, "http://"))
			if r := s.Probe(t.Context(), tc.bucket); !r.Succeeded() {
				t.Fatal(r.Message)
			}
			bySDK := s.call(t.Context(), func(ctx context.Context, c *s3.Client) error {
				_, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &tc.bucket})
				return err
			})
			if bySDK != nil {
				t.Fatal(bySDK)
			}
			ours, sdks := <-got, <-got
			if tc.wantHost != "" && !strings.HasPrefix(ours.Host, tc.wantHost+":") || strings.TrimSuffix(ours.URL.Path, "/") != strings.TrimSuffix(tc.wantAt, "/") {
				t.Errorf("host %s, path %s", ours.Host, ours.URL.Path)
			}
			if ours.Host != sdks.Host || strings.TrimSuffix(ours.URL.Path, "/") != strings.TrimSuffix(sdks.URL.Path, "/") {
				t.Errorf("the SDK sends its request to %s%s, and the prober to %s%s", sdks.Host, sdks.URL.Path, ours.Host, ours.URL.Path)
			}
			auth := ours.Header.Get("Authorization")
			if !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential="+testKeyID+"/") || !strings.Contains(auth, "/eu-central-1/s3/") ||
				ours.Header.Get("X-Amz-Security-Token") != testToken {
				t.Errorf("headers %v", ours.Header)
			}
		})
	}
}

// dialLocally directs all connections of a store to an address.
func dialLocally(s *Store, address string) {
	s.line.kept.Transport.(*http.Transport).DialContext = dialer(address)
	s.line.fresh.Transport.(*http.Transport).DialContext = dialer(address)
}

func TestProbesShareAConnection(t *testing.T) {
	server := faultserver.Start(t, faultserver.TLS(faultserver.Good))
	server.Script(faultserver.Rule{Path: "/gone", Fault: faultserver.S3Error(404, "NoSuchBucket")})
	store := storeAt(t, server)
	for i := range 20 {
		if r := store.Probe(t.Context(), fmt.Sprintf("bucket-%d", i)); !r.Succeeded() {
			t.Fatal(r.Message)
		}
		if r := store.Probe(t.Context(), "gone"); r.Reason != ReasonBucketNotFound {
			t.Fatal(r.Message)
		}
	}
	// A connection becomes free a moment after the response body has been read, so the
	// next request sometimes opens another connection.
	if n := server.Connections(); n > 5 {
		t.Errorf("%d connections for 60 requests one after the other", n)
	}
}

func TestNoMoreConnectionsAreKeptThanTheLimitAllows(t *testing.T) {
	const places = 3
	server := faultserver.Start(t)
	server.Script(faultserver.Rule{Fault: faultserver.Delay(2 * time.Millisecond)})
	c := configAt(t, server)
	c.Limiter = NewLimiter(1e6, places)
	store := storeFrom(t, c)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 10 {
				release, err := store.Limiter().Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if r := store.Probe(t.Context(), "photos"); !r.Succeeded() {
					t.Error(r.Message)
				}
				release()
			}
		})
	}
	all.Wait()
	if n := server.Connections(); n > 20 {
		t.Errorf("%d connections for 100 requests, %d at a time", n, places)
	}
}

func TestConnectionThatTheStoreClosedBetweenProbesIsNoFailure(t *testing.T) {
	server := faultserver.Start(t)
	store := storeAt(t, server)
	for i := range 200 {
		if r := store.Probe(t.Context(), "photos"); !r.Succeeded() {
			t.Fatalf("probe %d: %+v", i, r)
		}
		// The client may notice the closed connection before the next probe, or during
		// it.
		server.CloseConnections()
	}
}

func TestLatencyDoesNotContainWaitingForTheLimit(t *testing.T) {
	server := faultserver.Start(t)
	c := configAt(t, server)
	c.Limiter = NewLimiter(4, 1)
	store := storeFrom(t, c)
	for range 3 {
		before := time.Now()
		release, err := store.Limiter().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waited := time.Since(before)
		r := store.Probe(t.Context(), "photos")
		release()
		if whole := time.Since(before); !r.Succeeded() || r.Latency <= 0 || r.Latency > whole-waited {
			t.Errorf("%+v, of %v of which %v were waiting", r, whole, waited)
		}
	}
}

func TestLatencyIsThatOfTheFirstAnswer(t *testing.T) {
	server := faultserver.Start(t, faultserver.Behind(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	})))
	server.Script(faultserver.Rule{Method: "GET", Fault: faultserver.Delay(150 * time.Millisecond)})
	store := storeAt(t, server)
	start := time.Now()
	r := store.Probe(t.Context(), "photos")
	requests := server.Requests()
	if len(requests) != 2 {
		t.Fatalf("%+v after the requests %v", r, requests)
	}
	// The first answer comes before the second request.
	if limit := requests[1].At.Sub(start); r.Reason != ReasonAccessDenied || r.Latency <= 0 || r.Latency > limit {
		t.Errorf("%+v, want a latency of at most %v", r, limit)
	}
}

func TestRetryAfterSilencesAllCallersOfTheStore(t *testing.T) {
	for name, ask := range map[string]func(*Store) time.Duration{
		"probe": func(s *Store) time.Duration { return s.Probe(t.Context(), "photos").RetryAfter },
		"check": func(s *Store) time.Duration { return s.Check(t.Context()).RetryAfter },
		"call": func(s *Store) time.Duration {
			e, _ := s.call(t.Context(), createBucket).(*Error)
			return e.RetryAfter
		},
	} {
		server := faultserver.Start(t)
		server.Script(faultserver.Rule{Times: 1, Fault: faultserver.Throttle("30")})
		store := storeAt(t, server)
		if got := ask(store); got != 30*time.Second {
			t.Errorf("%s: retry after %v", name, got)
		}
		if release, wait := store.Limiter().TryAcquire(); release != nil || wait < 15*time.Second {
			t.Errorf("%s: another caller was admitted, or got the wait %v", name, wait)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := store.call(ctx, createBucket)
		cancel()
		e, _ := err.(*Error)
		if e == nil || e.Reason != ReasonThrottled || e.RetryAfter < 15*time.Second || server.Count() != 1 {
			t.Errorf("%s: a call: %+v, %d requests", name, e, server.Count())
		}
	}
}

func TestThrottledWithoutATimePausesNobody(t *testing.T) {
	server := faultserver.Start(t)
	server.Script(faultserver.Rule{Times: 1, Fault: faultserver.Throttle("")})
	store := storeAt(t, server)
	store.Probe(t.Context(), "photos")
	if release, _ := store.Limiter().TryAcquire(); release == nil {
		t.Error("paused")
	}
}

func TestCheckTellsAStoreThatKnowsUs(t *testing.T) {
	list := faultserver.Body(200, "<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>")
	for _, tc := range []struct {
		name  string
		fault faultserver.Fault
		want  Reason
	}{
		{"a list", list, ReasonSucceeded},
		{"no permission to list", faultserver.S3Error(403, "AccessDenied"), ReasonSucceeded},
		{"no permission, without a body", faultserver.Status(403), ReasonSucceeded},
		{"a store that has no list", faultserver.S3Error(501, "NotImplemented"), ReasonSucceeded},
		{"501 without an error code", faultserver.Status(501), ReasonUnsupported},
		{"an unknown key", faultserver.S3Error(403, "InvalidAccessKeyId"), ReasonInvalidCredentials},
		{"a wrong secret", faultserver.S3Error(403, "SignatureDoesNotMatch"), ReasonInvalidCredentials},
		{"a clock that is off", faultserver.S3Error(403, "RequestTimeTooSkewed"), ReasonClockSkew},
		{"a web server", faultserver.Garbage(404), ReasonUnexpectedResponse},
		{"a web server that answers with 200", faultserver.Garbage(200), ReasonUnexpectedResponse},
		{"an empty answer", faultserver.Status(200), ReasonUnexpectedResponse},
		{"another document", faultserver.Body(200, "<html></html>"), ReasonUnexpectedResponse},
		{"a store that fails", faultserver.Status(500), ReasonServerError},
		{"a store that is busy", faultserver.Throttle("5"), ReasonThrottled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := faultserver.Start(t)
			server.Script(faultserver.Rule{Fault: tc.fault})
			got := storeAt(t, server).Check(t.Context())
			if got.Reason != tc.want || got.Latency <= 0 {
				t.Errorf("%+v, want %s", got, tc.want)
			}
			if diff := cmp.Diff([]string{"GET /?max-buckets=1&x-id=ListBuckets"}, server.Lines()); diff != "" {
				t.Error(diff)
			}
			assertNoSecret(t, fmt.Sprintf("%+v", got))
		})
	}
}

func TestCheckOpensANewConnectionAndProbesKeepTheirs(t *testing.T) {
	server := faultserver.Start(t)
	server.Script(faultserver.Rule{Path: "/", Method: "GET", Fault: faultserver.Body(200, "<ListAllMyBucketsResult/>")})
	store := storeAt(t, server)
	const rounds = 6
	for range rounds {
		store.Probe(t.Context(), "photos")
		if r := store.Check(t.Context()); !r.Succeeded() {
			t.Fatalf("%+v", r)
		}
	}
	// A connection becomes free a moment after the response body has been read, so a probe
	// sometimes opens another connection.
	if n := server.Connections(); n < rounds+1 || n > rounds+3 {
		t.Errorf("%d connections for %d probes and %d checks, want 1 and %d", n, rounds, rounds, rounds)
	}
}

func TestCheckSeesADeadStoreThoughConnectionsAreKept(t *testing.T) {
	server := faultserver.Start(t)
	store := storeAt(t, server)
	store.Probe(t.Context(), "photos")
	server.Down()
	if r := store.Check(t.Context()); r.Reason != ReasonEndpointUnreachable {
		t.Errorf("%+v", r)
	}
	server.Up()
	if r := store.Probe(t.Context(), "photos"); !r.Succeeded() {
		t.Errorf("after the store is back: %+v", r)
	}
}

func TestCheckDoesNotWaitForTheLimit(t *testing.T) {
	server := faultserver.Start(t)
	c := configAt(t, server)
	c.Limiter = NewLimiter(1, 1)
	store := storeFrom(t, c)
	release, err := store.Limiter().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), plenty)
	defer cancel()
	server.Script(faultserver.Rule{Fault: faultserver.S3Error(403, "AccessDenied")})
	if r := store.Check(ctx); !r.Succeeded() {
		t.Errorf("%+v", r)
	}
}

// shelf returns a simple store for the objects that Canary writes. The function spoil changes the
// content that a client reads.
func shelf(spoil func(string) string) http.Handler {
	var mu sync.Mutex
	objects := map[string]string{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.Method {
		case http.MethodPut:
			body, _ := io.ReadAll(r.Body)
			objects[r.URL.Path] = string(body)
			w.Header().Set("X-Amz-Version-Id", "v1")
		case http.MethodGet:
			_, _ = io.WriteString(w, spoil(objects[r.URL.Path]))
		case http.MethodDelete:
			delete(objects, r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

func intact(s string) string { return s }

func TestCanaryWritesReadsAndDeletes(t *testing.T) {
	server := faultserver.Start(t, faultserver.Behind(shelf(intact)))
	r := storeAt(t, server).Canary(t.Context(), "photos", ".koboshi/canary")
	if !r.Succeeded() || r.Latency <= 0 {
		t.Errorf("%+v", r)
	}
	want := []string{
		"PUT /photos/.koboshi/canary?x-id=PutObject",
		"GET /photos/.koboshi/canary?x-id=GetObject",
		"DELETE /photos/.koboshi/canary?versionId=v1&x-id=DeleteObject",
	}
	if diff := cmp.Diff(want, server.Lines()); diff != "" {
		t.Error(diff)
	}
}

func TestCanarySeesWhatHeadDoesNot(t *testing.T) {
	for _, tc := range []struct {
		name   string
		spoil  func(string) string
		rule   faultserver.Rule
		want   Reason
		last   string // method of the last request
		amount int
	}{
		{"no permission to write", intact, faultserver.Rule{Method: "PUT", Fault: faultserver.S3Error(403, "AccessDenied")}, ReasonAccessDenied, "PUT", 1},
		{"no permission to read", intact, faultserver.Rule{Method: "GET", Fault: faultserver.S3Error(403, "AccessDenied")}, ReasonAccessDenied, "DELETE", 3},
		{"no permission to delete", intact, faultserver.Rule{Method: "DELETE", Fault: faultserver.S3Error(403, "AccessDenied")}, ReasonAccessDenied, "DELETE", 3},
		{"nothing comes back", func(string) string { return "" }, faultserver.Rule{Path: "/never", Fault: faultserver.Hang()}, ReasonUnexpectedResponse, "DELETE", 3},
		{"something else comes back", strings.ToLower, faultserver.Rule{Path: "/never", Fault: faultserver.Hang()}, ReasonUnexpectedResponse, "DELETE", 3},
		{"more comes back", func(s string) string { return s + s }, faultserver.Rule{Path: "/never", Fault: faultserver.Hang()}, ReasonUnexpectedResponse, "DELETE", 3},
		{"the answer breaks off", intact, faultserver.Rule{Method: "GET", Fault: faultserver.TruncatedBody(200)}, ReasonEndpointUnreachable, "DELETE", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := faultserver.Start(t, faultserver.Behind(shelf(tc.spoil)))
			server.Script(tc.rule)
			got := storeAt(t, server).Canary(t.Context(), "photos", "canary")
			if got.Reason != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
			lines := server.Lines()
			if len(lines) != tc.amount || !strings.HasPrefix(lines[len(lines)-1], tc.last) {
				t.Errorf("requests %q", lines)
			}
			assertNoSecret(t, fmt.Sprintf("%+v", got))
		})
	}
}

func TestHealthOfARealStore(t *testing.T) {
	store := gatewayStore(t)
	bucket := newBucket(t, store, true)
	if r := store.Check(t.Context()); !r.Succeeded() {
		t.Errorf("check: %+v", r)
	}
	if r := store.Probe(t.Context(), bucket); !r.Succeeded() {
		t.Errorf("probe: %+v", r)
	}
	if r := store.Probe(t.Context(), "no-such-bucket"); r.Reason != ReasonBucketNotFound {
		t.Errorf("probe of a missing bucket: %+v", r)
	}
	if r := store.Canary(t.Context(), bucket, "canary"); !r.Succeeded() {
		t.Errorf("canary: %+v", r)
	}
	versions, err := store.client.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: aws.String(bucket)})
	if err != nil || len(versions.Versions)+len(versions.DeleteMarkers) != 0 {
		t.Errorf("the canary left something behind in a versioned bucket: %+v, %v", versions, err)
	}
	c := gatewayConfig(t)
	c.Credentials = Credentials{AccessKeyID: testKeyID, SecretAccessKey: "wrong"}
	wrong := storeFrom(t, c)
	if r := wrong.Check(t.Context()); r.Reason != ReasonInvalidCredentials {
		t.Errorf("check with a wrong secret: %+v", r)
	}
	if r := wrong.Probe(t.Context(), bucket); r.Reason != ReasonInvalidCredentials {
		t.Errorf("probe with a wrong secret: %+v", r)
	}
}

func TestTheExpectedOwnerIsSentWithEveryRequestForABucket(t *testing.T) {
	const account = "111122223333"
	got := make(chan *http.Request, 10)
	server := faultserver.Start(t, faultserver.Behind(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r })))
	c := configAt(t, server)
	c.ExpectedBucketOwner = account
	s := storeFrom(t, c)
	_ = s.Check(t.Context())
	if r := <-got; r.Header.Get(ownerHeader) != "" {
		t.Error("sent with the list of buckets")
	}
	for name, ask := range map[string]func(){
		"Probe":  func() { _ = s.Probe(t.Context(), "photos") },
		"Tags":   func() { _, _ = s.Tags(t.Context(), "photos") },
		"Delete": func() { _ = s.Delete(t.Context(), "photos") },
	} {
		ask()
		r := <-got
		if r.Header.Get(ownerHeader) != account || !strings.Contains(r.Header.Get("Authorization"), "x-amz-expected-bucket-owner") {
			t.Errorf("%s: header %q, signed %q", name, r.Header.Get(ownerHeader), r.Header.Get("Authorization"))
		}
	}
}

func TestEachRequestIsCountedWithItsOperationAndStatus(t *testing.T) {
	var counted []string
	config := gatewayConfig(t)
	config.Requested = func(operation string, status int) {
		counted = append(counted, fmt.Sprintf("%s %d", operation, status))
	}
	s := storeFrom(t, config)
	s.Check(t.Context())
	s.Probe(t.Context(), newName(t))
	config.Endpoint = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	storeFrom(t, config).Check(t.Context())
	// A failed probe sends a second request, to find out the reason of the failure.
	want := []string{"ListBuckets 200", "HeadBucket 404", "ListObjectsV2 404", "ListBuckets 0"}
	if diff := cmp.Diff(want, counted); diff != "" {
		t.Error(diff)
	}
}

package countstore

import (
	"context"
	"encoding/xml"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serve starts a store with three buckets.
func serve(t *testing.T, delay time.Duration) Steer {
	t.Helper()
	store := &Server{Buckets: 3, Delay: delay}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = store.ServeOn(l)
		close(ended)
	}()
	control := httptest.NewServer(store.Control())
	t.Cleanup(func() {
		control.Close()
		_ = l.Close()
		<-ended
	})
	return Steer{Addresses{Endpoint: "http://" + l.Addr().String(), Control: control.URL}}
}

// ask sends one request with a client that has its own connections.
func ask(ctx context.Context, c *http.Client, method, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 ...")
	return c.Do(req)
}

func client(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func journal(t *testing.T, s Steer) (buckets []int32, at []int64) {
	t.Helper()
	all, err := s.Journal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		buckets, at = append(buckets, a.Bucket), append(at, a.At)
	}
	return buckets, at
}

func TestEveryRequestIsAnsweredAndWrittenDown(t *testing.T) {
	s, c := serve(t, 0), client(t)
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{http.MethodHead, "/bench-000002", 200},
		{http.MethodGet, "/bench-000001?list-type=2&max-keys=1", 200},
		{http.MethodGet, "/?x-id=ListBuckets", 200},
		{http.MethodHead, "/bench-000003", 404},
		{http.MethodHead, "/another", 404},
		{http.MethodPut, "/bench-000000", 501},
	} {
		resp, err := ask(t.Context(), c, test.method, s.Endpoint+test.path)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != test.status {
			t.Errorf("%s %s: %s", test.method, test.path, resp.Status)
		}
		if test.method == http.MethodGet {
			var answer struct{ XMLName xml.Name }
			if err := xml.NewDecoder(resp.Body).Decode(&answer); err != nil {
				t.Errorf("%s: %v", test.path, err)
			}
		}
		_ = resp.Body.Close()
	}
	buckets, at := journal(t, s)
	if diff := cmp.Diff([]int32{2, 1, OfStore, Unknown, Unknown, 0}, buckets); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	for i := 1; i < len(at); i++ {
		if at[i] < at[i-1] {
			t.Errorf("the journal goes back in time: %v", at)
		}
	}
}

func TestUnsignedRequestIsDenied(t *testing.T) {
	s := serve(t, 0)
	resp, err := client(t).Head(s.Endpoint + "/bench-000000")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("%s", resp.Status)
	}
}

func TestAnswerTakesTheDelay(t *testing.T) {
	const delay = 30 * time.Millisecond
	s := serve(t, delay)
	start := time.Now()
	resp, err := ask(t.Context(), client(t), http.MethodHead, s.Endpoint+"/bench-000000")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if took := time.Since(start); took < delay {
		t.Errorf("answered after %v", took)
	}
}

func TestStoreThatIsDownCountsEachAttemptAndAnswersNone(t *testing.T) {
	s, kept, fresh := serve(t, 0), client(t), client(t)
	resp, err := ask(t.Context(), kept, http.MethodHead, s.Endpoint+"/bench-000000")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := s.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	const attempts = 5
	for range attempts {
		if resp, err := ask(t.Context(), fresh, http.MethodHead, s.Endpoint+"/bench-000000"); err == nil {
			t.Errorf("answered with %s", resp.Status)
			_ = resp.Body.Close()
		}
	}
	// A connection that was opened before the store went down is cut as well.
	if resp, err := ask(t.Context(), kept, http.MethodHead, s.Endpoint+"/bench-000000"); err == nil {
		t.Errorf("answered over an old connection with %s", resp.Status)
		_ = resp.Body.Close()
	}
	want := []int32{0, Refused, Refused, Refused, Refused, Refused, Refused}
	if buckets, _ := journal(t, s); !cmp.Equal(want, buckets) {
		t.Errorf("journal %v, want %v", buckets, want)
	}
	if err := s.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp, err = ask(t.Context(), fresh, http.MethodHead, s.Endpoint+"/bench-000001")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func TestOnlyNamesOfTheStoreAreItsBuckets(t *testing.T) {
	if i, ok := bucketIndex(BucketName(1234567)); !ok || i != 1234567 {
		t.Errorf("%d, %v", i, ok)
	}
	for _, name := range []string{"", "bench-", "bench-1", "bench-+00001", "bench--00001", "other-000001"} {
		if i, ok := bucketIndex(name); ok {
			t.Errorf("%q is bucket %d", name, i)
		}
	}
}

package probe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
)

const (
	testKeyID  = "AKIDTESTTESTTEST"
	testSecret = "s3cr3t-that-must-not-appear"
)

// fakeStore answers HEAD and GET as a script says and counts both.
type fakeStore struct {
	head, get http.HandlerFunc

	mu    sync.Mutex
	calls []string
}

func (f *fakeStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.calls = append(f.calls, r.Method+" "+r.URL.RequestURI())
	f.mu.Unlock()
	if r.Method == http.MethodHead {
		f.head(w, r)
		return
	}
	f.get(w, r)
}

func (f *fakeStore) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

// start serves the script and returns a target for it.
func (f *fakeStore) start(t *testing.T) Target {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return targetFor(t, server.URL)
}

func targetFor(t *testing.T, rawURL string) Target {
	t.Helper()
	endpoint, err := ParseEndpoint(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return Target{
		Endpoint:    endpoint,
		Region:      "us-east-1",
		Bucket:      "photos",
		Credentials: Credentials{AccessKeyID: testKeyID, SecretAccessKey: testSecret},
	}
}

// status answers with a status and headers, and no body.
func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// s3Error answers with an S3 error document, which repeats what a careless
// store might: the key and a request ID.
func s3Error(code int, s3Code string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code>`+
			`<Message>your key %s and secret %s are bad</Message><AWSAccessKeyId>%s</AWSAccessKeyId>`+
			`<RequestId>REQ-%s</RequestId></Error>`, s3Code, testKeyID, testSecret, testKeyID, url.QueryEscape(r.URL.Path))
	}
}

func emptyList(w http.ResponseWriter, _ *http.Request) {
	_, _ = fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>photos</Name><KeyCount>0</KeyCount></ListBucketResult>`)
}

func text(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = fmt.Fprint(w, body)
	}
}

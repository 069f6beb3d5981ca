package viewer_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/site"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/viewer"
)

// running is a running viewer, on its own port.
type running struct {
	url  string
	log  *journal
	stop context.CancelFunc
	done chan error
}

// journal holds the log of the viewer.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *journal) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *journal) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func start(t testing.TB, o viewer.Options) *running {
	t.Helper()
	r := &running{log: &journal{}, done: make(chan error, 1)}
	o.Logger = slog.New(slog.NewJSONHandler(r.log, nil))
	v, err := viewer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() {
		r.done <- v.Run(ctx, listener)
		close(r.done)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-r.done; err != nil {
			t.Errorf("the viewer ended with %v", err)
		}
	})
	return r
}

// content returns a directory with these files.
func content(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("timed out while waiting for: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func get(t testing.TB, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	return do(t, http.MethodGet, url, headers...)
}

func do(t testing.TB, method, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	// The transport's automatic decompression would hide the encoding under test.
	client := &http.Client{
		Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func ready(t testing.TB, r *running) {
	t.Helper()
	until(t, "the viewer to be ready", func() bool {
		answer, _ := get(t, r.url+"/readyz")
		return answer.StatusCode == http.StatusOK
	})
}

var book = map[string]string{
	"README.md":    "# Home\n\n" + strings.Repeat("Some text for the home page. ", 50),
	"guide/one.md": "# One\n\nText.\n",
	"img/a.png":    "\x89PNG" + strings.Repeat("\x00", 4000),
}

func TestRequestsAreAnsweredAsHTTPSays(t *testing.T) {
	r := start(t, viewer.Options{Content: content(t, book), Site: site.Options{BasePath: "/docs/"}})
	ready(t, r)
	home, body := get(t, r.url+"/docs/")
	tag := home.Header.Get("ETag")
	zipped, _ := get(t, r.url+"/docs/", "Accept-Encoding", "gzip")

	for name, c := range map[string]struct {
		method, path string
		headers      []string
		status       int
		want         map[string]string
	}{
		"a page":                     {path: "/docs/", status: 200, want: map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "Vary": "Accept-Encoding", "Content-Encoding": ""}},
		"head":                       {method: "HEAD", path: "/docs/", status: 200, want: map[string]string{"Etag": tag}},
		"unchanged":                  {path: "/docs/", headers: []string{"If-None-Match", tag}, status: 304, want: map[string]string{"Etag": tag, "Cache-Control": "no-cache", "Content-Length": "", "Content-Encoding": ""}},
		"unchanged, weakly":          {path: "/docs/", headers: []string{"If-None-Match", `"x", W/` + tag}, status: 304},
		"unchanged, anything":        {path: "/docs/", headers: []string{"If-None-Match", "*"}, status: 304},
		"changed":                    {path: "/docs/", headers: []string{"If-None-Match", `"other"`}, status: 200},
		"unchanged, other encoding":  {path: "/docs/", headers: []string{"If-None-Match", zipped.Header.Get("ETag")}, status: 200},
		"gzip":                       {path: "/docs/", headers: []string{"Accept-Encoding", "deflate, gzip;q=0.5, br"}, status: 200, want: map[string]string{"Content-Encoding": "gzip"}},
		"gzip by star":               {path: "/docs/", headers: []string{"Accept-Encoding", "*"}, status: 200, want: map[string]string{"Content-Encoding": "gzip"}},
		"gzip refused":               {path: "/docs/", headers: []string{"Accept-Encoding", "gzip;q=0, *;q=1"}, status: 200, want: map[string]string{"Content-Encoding": ""}},
		"gzip with a broken weight":  {path: "/docs/", headers: []string{"Accept-Encoding", "gzip;q=lots"}, status: 200, want: map[string]string{"Content-Encoding": ""}},
		"an image is not compressed": {path: "/docs/img/a.png", headers: []string{"Accept-Encoding", "gzip"}, status: 200, want: map[string]string{"Content-Encoding": "", "Vary": ""}},
		"not found":                  {path: "/docs/nothing", status: 404, want: map[string]string{"Content-Type": "text/html; charset=utf-8"}},
		"outside the base path":      {path: "/other/", status: 404},
		"not found is never a 304":   {path: "/docs/nothing", headers: []string{"If-None-Match", "*"}, status: 404},
		"base path without slash":    {path: "/docs", status: 307, want: map[string]string{"Location": "/docs/"}},
		"redirect keeps the query":   {path: "/docs/guide/one?a=b", status: 307, want: map[string]string{"Location": "/docs/guide/one.html?a=b"}},
		"post":                       {method: "POST", path: "/docs/", status: 405, want: map[string]string{"Allow": "GET, HEAD"}},
		"delete":                     {method: "DELETE", path: "/docs/guide/one.html", status: 405},
		"search":                     {path: "/docs/search?q=text", status: 200, want: map[string]string{"Content-Type": "text/html; charset=utf-8"}},
		"search, broken query":       {path: "/docs/search?q=%zz;%", status: 200},
		"healthz":                    {path: "/healthz", status: 200},
		"healthz below the base":     {path: "/docs/healthz", status: 200},
		"readyz below the base":      {path: "/docs/readyz", status: 200},
		"no way out of the content":  {path: "/docs/..%2f..%2f..%2fetc/passwd", status: 404},
	} {
		method := c.method
		if method == "" {
			method = "GET"
		}
		answer, text := do(t, method, r.url+c.path, c.headers...)
		if answer.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", name, answer.StatusCode, c.status)
		}
		for key, want := range c.want {
			if got := answer.Header.Get(key); got != want {
				t.Errorf("%s: %s is %q, want %q", name, key, got, want)
			}
		}
		if (method == "HEAD" || c.status == 304) && text != "" {
			t.Errorf("%s: a body of %d bytes", name, len(text))
		}
		if answer.Header.Get("X-Content-Type-Options") != "nosniff" || answer.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: the security headers are missing: %v", name, answer.Header)
		}
	}
	if head, _ := do(t, "HEAD", r.url+"/docs/"); head.ContentLength != int64(len(body)) {
		t.Errorf("HEAD reports %d bytes, but the body of GET has %d", head.ContentLength, len(body))
	}
	if _, text := get(t, r.url+"/docs/nothing"); !strings.Contains(text, `href="/docs/guide/one.html"`) {
		t.Error("the page for missing addresses has no navigation")
	}
}

func TestARequestAllocatesLittle(t *testing.T) {
	dir := content(t, book)
	v, err := viewer.New(viewer.Options{Content: dir})
	if err != nil {
		t.Fatal(err)
	}
	v.Load()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
	w := &discard{header: http.Header{}}
	if got := testing.AllocsPerRun(100, func() {
		clear(w.header)
		v.Handler().ServeHTTP(w, request)
	}); got > 0 {
		t.Errorf("%v allocations per request, want none, because all responses were prepared when the site was built", got)
	}
	if w.bytes == 0 {
		t.Error("nothing was served")
	}
}

type discard struct {
	header http.Header
	bytes  int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }

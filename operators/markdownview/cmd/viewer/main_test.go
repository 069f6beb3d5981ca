package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTheViewerIsSmallAndKnowsNothingOfKubernetes(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, out)
	}
	for name := range strings.Lines(string(out)) {
		if strings.HasPrefix(name, "k8s.io/") || strings.HasPrefix(name, "sigs.k8s.io/") {
			t.Errorf("it imports %s", strings.TrimSpace(name))
		}
	}
}

func TestWrongFlagsAreRefusedWithWhatToDo(t *testing.T) {
	for want, args := range map[string][]string{
		"--content":      {},
		"base path":      {"--content", ".", "--base-path", "a b"},
		"theme":          {"--content", ".", "--theme", "blue"},
		"--help":         {"--content", ".", "extra"},
		"--listen":       {"--content", ".", "--listen", "256.0.0.1:x"},
		"help requested": {"--nonsense"},
	} {
		var out strings.Builder
		err := run(t.Context(), args, &out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one about %s", args, err, want)
		}
	}
}

func TestAwaitEndsWithTheFirstAnswerThatIsAPage(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	if err := run(t.Context(), []string{"--await", server.URL}, io.Discard); err != nil {
		t.Error(err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("it sent %d requests, want 3", n)
	}
}

func TestAwaitSaysWhyThereIsNoPage(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	nobody := "http://127.0.0.1:1"
	for url, want := range map[string]string{server.URL: "404 Not Found", nobody: "refused"} {
		err := run(t.Context(), []string{"--await", url, "--await-limit", "2s"}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "not served within 2s") {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// output keeps what a running command writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var listensAt = regexp.MustCompile(`"msg":"listening","address":"([^"]+)"`)

// serves reports whether a command serves a path at the address in the command's log.
func serves(log *output, path string) bool {
	found := listensAt.FindStringSubmatch(log.String())
	if found == nil {
		return false
	}
	answer, err := http.Get("http://" + found[1] + path)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func TestTheCommandServesUntilItIsTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# Hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var out output
	go func() {
		done <- run(ctx, []string{"--content", dir, "--listen", "127.0.0.1:0", "--title", "Mine", "--base-path", "/docs"}, &out)
	}()
	for deadline := time.After(20 * time.Second); !serves(&out, "/docs/"); {
		select {
		case err := <-done:
			t.Fatalf("it ended with %v; log: %s", err, out.String())
		case <-deadline:
			t.Fatalf("it does not serve; log: %s", out.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), `"msg":"serving"`) {
		t.Errorf("log: %s", out.String())
	}
}

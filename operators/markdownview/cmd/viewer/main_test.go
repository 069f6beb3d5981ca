package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

func TestTheCommandServesUntilItIsTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# Hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var out strings.Builder
	go func() {
		done <- run(ctx, []string{"--content", dir, "--listen", address, "--title", "Mine", "--base-path", "/docs"}, &out)
	}()
	for deadline := time.After(20 * time.Second); ; {
		answer, err := http.Get("http://" + address + "/docs/")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case <-deadline:
			t.Fatalf("it does not serve: %v", err)
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

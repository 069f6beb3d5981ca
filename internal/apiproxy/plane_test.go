package apiproxy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// plane runs a real API server with the program that the environment variable
// KOBOSHI names.
func plane(t testing.TB) *rest.Config {
	t.Helper()
	program := os.Getenv("KOBOSHI")
	if program == "" {
		t.Skip("KOBOSHI does not name the koboshi program; build it, and set KOBOSHI to its absolute path")
	}
	dir := t.TempDir()
	ready, kubeconfig := filepath.Join(dir, "ready"), filepath.Join(dir, "kubeconfig")
	var output strings.Builder
	cmd := exec.Command(program, "up", "--profile", "workloads", "--ephemeral", "--die-with-parent", "--ready-file", ready, "--kubeconfig", kubeconfig)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-exited
	})
	for deadline := time.Now().Add(60 * time.Second); ; {
		if _, err := os.Stat(ready); err == nil {
			break
		}
		select {
		case <-exited:
			t.Fatalf("the plane has ended: %s", output.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the plane is not ready after a minute: %s", output.String())
		}
	}
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRealPlaneIsSeenThroughTheProxyAsItIs(t *testing.T) {
	server := plane(t)
	log := trace.NewLog(time.Now())
	p, err := Start(t.Context(), Config{Upstream: server, Log: log, Instance: "controller-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	maps := clientset(t, clientConfig(t, p), true).CoreV1().ConfigMaps("default")

	for i, asProtobuf := range []bool{false, true} {
		told, _ := inform(t, clientConfig(t, p), asProtobuf)
		obj, err := maps.Create(ctx, configMap("one", "1"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, told, "add one=1")
		p.Hold(configMaps)
		for _, v := range []string{"lost", "2"} {
			obj.Data["v"] = v
			if obj, err = maps.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		// Expire must reach the watch of every informer, including a watch that is only now
		// being opened.
		until(t, p, func(a Activity) bool {
			missing := func(s Stream) bool { return s.Held < 2 }
			return len(a.Streams) == i+1 && !slices.ContainsFunc(a.Streams, missing)
		})
		p.Expire(configMaps)
		p.Release()
		waitFor(t, told, "update one=2")
		if err := maps.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, told, "delete one=2")
	}
	for _, e := range log.Entries() {
		if e.Call != nil && e.Call.Verb == "update" && (e.Call.ResourceVersion == "" || e.Call.Code != 200) {
			t.Errorf("recorded %+v", e.Call)
		}
	}
	kubectl(t, p)
}

// waitFor waits for a notification, and ignores notifications about objects
// that every cluster has.
func waitFor(t *testing.T, told chan string, want string) {
	t.Helper()
	for {
		select {
		case got := <-told:
			switch {
			case got == want:
				return
			case strings.Contains(got, "one=lost"):
				t.Fatalf("the informer reported %q, a state that it must have missed", got)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the informer never reported %q", want)
		}
	}
}

// kubectl runs kubectl get, which requests discovery and a table.
func kubectl(t *testing.T, p *Proxy) {
	t.Helper()
	kubeconfig, err := p.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), os.Getenv("KOBOSHI"), "kubectl", "--kubeconfig", file, "get", "namespaces").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "kube-system") {
		t.Errorf("kubectl printed %s, %v", out, err)
	}
}

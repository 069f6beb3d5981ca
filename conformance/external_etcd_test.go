package conformance

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStateIsKeptInTheEtcdThatIsGiven(t *testing.T) {
	t.Parallel()
	endpoint := startEtcd(t)
	first := startPlane(t, "--profile=api", "--etcd-servers="+endpoint)
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"by": "etcd"}}
	if _, err := first.client.CoreV1().ConfigMaps("default").Create(t.Context(), want, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	first.kill()

	// The second plane has its own data directory, so the two planes share only the etcd.
	second := startPlane(t, "--profile=api", "--etcd-servers="+endpoint)
	got, err := second.client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Data["by"] != "etcd" {
		t.Errorf("data %v, want %v", got.Data, want.Data)
	}
	if _, err := os.Stat(filepath.Join(second.dir, ".koboshi", "etcd")); err == nil {
		t.Error("the plane also started an etcd of its own")
	}
}

func TestSecondPlaneOnTheSameEtcdIsRefused(t *testing.T) {
	t.Parallel()
	endpoint := startEtcd(t)
	startPlane(t, "--profile=api", "--etcd-servers="+endpoint)
	// The second plane first waits for a while and reports this, because the other plane
	// may have been killed.
	code, stderr := up(t, t.TempDir(), "--profile=api", "--etcd-servers="+endpoint)
	if code != 2 || !strings.Contains(stderr, "another plane uses this etcd") {
		t.Errorf("exit code %d and %q, want 2 and the message that another plane uses this etcd", code, stderr)
	}
}

func TestDataDirectoryKeepsToItsStore(t *testing.T) {
	t.Parallel()
	p := startPlane(t, "--profile=api")
	p.stop()
	mustRefuse(t, p.dir, "omit --etcd-servers", "--profile=api", "--etcd-servers=http://127.0.0.1:1")
}

// startEtcd builds stock etcd from the same module that Koboshi uses, runs it until the
// test ends, and returns its endpoint.
func startEtcd(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "etcd")
	build := exec.Command("go", "build", "-o", binary, "go.etcd.io/etcd/server/v3")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as for the product, so most packages are already compiled
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building etcd: %v\n%s", err, out)
	}
	// Another process may take a port before etcd opens it.
	for range 3 {
		endpoint, exited := runEtcd(t, binary)
		healthy := false
		eventually(t, "etcd answers or exits", func(ctx context.Context) error {
			select {
			case <-exited:
				return nil
			default:
			}
			err := etcdAnswers(ctx, endpoint)
			healthy = err == nil
			return err
		})
		if healthy {
			return endpoint
		}
	}
	t.Fatal("etcd exited each time before it answered")
	return ""
}

// runEtcd starts etcd on free ports, and kills it when the test ends.
func runEtcd(t *testing.T, binary string) (endpoint string, exited <-chan struct{}) {
	t.Helper()
	data := t.TempDir()
	client, peer := freeAddresses(t)
	endpoint = "http://" + client
	cmd := exec.Command(binary, "--data-dir="+data, "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+endpoint, "--advertise-client-urls="+endpoint, "--listen-peer-urls=http://"+peer)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	return endpoint, done
}

func etcdAnswers(ctx context.Context, endpoint string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/health", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("health answers %s", resp.Status)
	}
	return nil
}

// freeAddresses returns two different addresses that are free now.
func freeAddresses(t *testing.T) (client, peer string) {
	t.Helper()
	var addresses [2]string
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // not earlier, so that the next address differs
		addresses[i] = l.Addr().String()
	}
	return addresses[0], addresses[1]
}

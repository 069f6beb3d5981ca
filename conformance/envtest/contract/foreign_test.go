package contract

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Java's kube-api-test writes flags differently from envtest: with
// one dash, with the value as a separate argument, and one flag twice.
func TestFlagsInTheWayOfKubeAPITestAreUnderstood(t *testing.T) {
	dir := t.TempDir()
	ports := freePorts(t, 2)
	etcdURL, peerURL := fmt.Sprint("http://127.0.0.1:", ports[0]), fmt.Sprint("http://localhost:", ports[1])
	run(t, "etcd",
		"-data-dir", filepath.Join(dir, "etcd"),
		"-wal-dir", filepath.Join(dir, "wal"),
		"--listen-client-urls", etcdURL,
		"--advertise-client-urls", etcdURL,
		"--listen-peer-urls", peerURL,
		"--initial-cluster", "default="+peerURL,
		"--initial-advertise-peer-urls", peerURL,
	)
	eventually(t, "etcd's health", func(ctx context.Context) error { return answers(ctx, etcdURL+"/health", "", http.StatusOK) })

	key, secure := writeKey(t, dir), freePorts(t, 1)[0]
	url := fmt.Sprint("https://127.0.0.1:", secure)
	run(t, "kube-apiserver",
		"--cert-dir", dir,
		"--secure-port", fmt.Sprint(secure),
		"--etcd-servers", etcdURL,
		"--authorization-mode", "RBAC",
		"--service-account-issuer", fmt.Sprintf("https://localhost:%d", secure),
		"--service-account-issuer", key,
		"--service-account-signing-key-file", key,
		"--service-account-key-file", key,
		"--disable-admission-plugins", "ServiceAccount",
		"--service-cluster-ip-range", "10.0.0.0/24",
		"--bind-address", "127.0.0.1",
		"--allow-privileged",
	)
	eventually(t, "kube-apiserver's health", func(ctx context.Context) error {
		return answers(ctx, url+"/healthz", "", http.StatusOK)
	})
}

// With AlwaysAllow, upstream turns anonymous access off, so envtest's anonymous health
// check never succeeds. Users of AlwaysAllow start the server without envtest.
func TestAuthorizationCanBeSwitchedOff(t *testing.T) {
	dir := t.TempDir()
	etcd := &envtest.Etcd{StartTimeout: 3 * time.Minute}
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := etcd.Stop(); err != nil {
			t.Error(err)
		}
	})
	key, tokens := writeKey(t, dir), filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte("secret-token,nobody,nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePorts(t, 1)[0]
	run(t, "kube-apiserver",
		"--cert-dir="+dir, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--etcd-servers="+etcd.URL.String(),
		"--authorization-mode=AlwaysAllow", "--token-auth-file="+tokens, "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://localhost", "--service-account-signing-key-file="+key, "--service-account-key-file="+key,
	)
	url := fmt.Sprint("https://127.0.0.1:", port)
	eventually(t, "the status 404 for a secret that no role covers", func(ctx context.Context) error {
		return answers(ctx, url+"/api/v1/namespaces/default/secrets/unheard-of", "secret-token", http.StatusNotFound)
	})
	if err := answers(t.Context(), url+"/healthz", "", http.StatusUnauthorized); err != nil {
		t.Error(err)
	}
}

// run starts a program, and kills it when the test ends, as kube-api-test does.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	var out output
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(folder, program), args...)
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close() // this process's copy
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&out, reader)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports that it was killed
		select {
		case <-done:
		case <-time.After(within):
			t.Errorf("%s was killed, and a process still holds its output open; its reader waits for ever", program)
		}
		_ = reader.Close()
		if t.Failed() {
			s := out.String()
			t.Logf("%s wrote at the end:\n%s", program, s[max(0, len(s)-2000):])
		}
	})
}

// answers returns an error unless the response to a GET has the status. The request
// carries the token, if one is given.
func answers(ctx context.Context, url, token string, status int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != status {
		return fmt.Errorf("%s: %s, want %d", url, response.Status, status)
	}
	return nil
}

// freePorts returns n different ports that are free now. Another program may take a port
// before the caller's program opens it. A caller that must pass a port number cannot
// prevent this.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // not earlier, so that the next port differs
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

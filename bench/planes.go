package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/util/keyutil"
)

const (
	startTimeout = 90 * time.Second
	pollInterval = 2 * time.Millisecond
)

// Running is the processes of one plane.
type Running struct{ processes []*process }

type process struct {
	cmd    *exec.Cmd
	output output
	exited chan struct{}
}

// output may be read while the process still writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Stop ends the processes, the last started first, and waits for them.
func (r *Running) Stop() {
	for i := len(r.processes) - 1; i >= 0; i-- {
		p := r.processes[i]
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.exited:
		case <-time.After(5 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
	}
}

func (r *Running) start(dir, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.exited) }()
	r.processes = append(r.processes, p)
	return p, nil
}

// Memory reads the processes' memory from /proc, in bytes.
func (r *Running) Memory() (rss, peak, pss int64, err error) {
	for _, p := range r.processes {
		dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
		for _, f := range []struct {
			file, key string
			sum       *int64
		}{{"status", "VmRSS:", &rss}, {"status", "VmHWM:", &peak}, {"smaps_rollup", "Pss:", &pss}} {
			kb, err := field(dir+f.file, f.key)
			if err != nil {
				return 0, 0, 0, err
			}
			*f.sum += kb * 1024
		}
	}
	inMemory := r.inMemory()
	return rss + inMemory, peak + inMemory, pss + inMemory, nil
}

// inMemory is what an ephemeral plane keeps in /dev/shm, which is memory too,
// in bytes on disk blocks.
func (r *Running) inMemory() (sum int64) {
	for _, p := range r.processes {
		_, kubeconfig, found := strings.Cut(p.output.String(), "export KUBECONFIG=/dev/shm/")
		if !found {
			continue
		}
		_ = filepath.WalkDir(filepath.Dir("/dev/shm/"+strings.TrimSpace(kubeconfig)), func(path string, _ fs.DirEntry, err error) error {
			var stat syscall.Stat_t
			if err == nil && syscall.Lstat(path, &stat) == nil {
				sum += stat.Blocks * 512
			}
			return nil
		})
	}
	return sum
}

func field(file, key string) (int64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, key)
}

// koboshi starts the binary on a port chosen beforehand, so that the same
// question can be asked of it as of the stock server.
func koboshi(binary string, args ...string) func(context.Context, string) (*Running, error) {
	return func(ctx context.Context, dir string) (*Running, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		r := &Running{}
		p, err := r.start(dir, binary, append([]string{"up", "--die-with-parent", "--port=" + port}, args...)...)
		if err != nil {
			return r, err
		}
		return r, p.answers(ctx, "https://127.0.0.1:"+port+"/readyz")
	}
}

// startStock starts the two stock binaries with envtest's flags; see
// pkg/internal/testing/controlplane of controller-runtime.
func startStock(ctx context.Context, binaries, dir string) (*Running, error) {
	r := &Running{}
	var ports [3]string
	for i := range ports {
		port, err := freePort()
		if err != nil {
			return r, err
		}
		ports[i] = port
	}
	client, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	etcd, err := r.start(dir, filepath.Join(binaries, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync=true",
		"--advertise-client-urls="+client, "--listen-client-urls="+client, "--listen-peer-urls="+peer)
	if err != nil {
		return r, err
	}
	if err := etcd.answers(ctx, client+"/health"); err != nil {
		return r, err
	}
	key, err := tokenKey(dir)
	if err != nil {
		return r, err
	}
	server, err := r.start(dir, filepath.Join(binaries, "kube-apiserver"), "--etcd-servers="+client,
		"--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", "--secure-port="+ports[2],
		"--cert-dir="+dir, "--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://127.0.0.1:"+ports[2]+"/", "--service-account-key-file="+key, "--service-account-signing-key-file="+key)
	if err != nil {
		return r, err
	}
	return r, server.answers(ctx, "https://127.0.0.1:"+ports[2]+"/readyz")
}

// answers waits until url answers 200. The certificate is not the question.
func (p *process) answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(pollInterval):
		case <-p.exited:
			return fmt.Errorf("%s ended: %s", filepath.Base(p.cmd.Path), p.output.String())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not answer", url), ctx.Err())
		}
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

func tokenKey(dir string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sa.key")
	return path, os.WriteFile(path, pem, 0o600)
}

func buildStock(ctx context.Context, dir string) error {
	for name, pkg := range map[string]string{"etcd": "go.etcd.io/etcd/server/v3", "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver"} {
		fmt.Fprintln(os.Stderr, "building stock", name)
		cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, name), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as upstream's releases are built
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building stock %s: %w", name, err)
		}
	}
	return nil
}

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The environment of a run:
//
//	KOBOSHI                  the binary (default: ../bin/koboshi, which make builds)
//	KOBOSHI_UP_ARGS          flags added to every koboshi up, to remove a part of Kubernetes
//	KOBOSHI_WITHIN           how long a condition may take (default 5m, for a busy machine)
const (
	startWithin  = 5 * time.Minute
	pollInterval = 20 * time.Millisecond
)

var (
	koboshi string
	within  = 5 * time.Minute

	shared     *plane
	sharedOnce sync.Once
)

func TestMain(m *testing.M) {
	if err := setup(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
	code := m.Run()
	for _, p := range []*plane{shared, sharedWorkloads, sharedProgramPlane} {
		if p != nil {
			p.stop()
			_ = os.RemoveAll(p.dir)
		}
	}
	_ = os.RemoveAll(checkedDir)
	os.Exit(code)
}

func setup() (err error) {
	koboshi = os.Getenv("KOBOSHI")
	if koboshi == "" {
		koboshi = filepath.Join("..", "bin", "koboshi")
	}
	if koboshi, err = filepath.Abs(koboshi); err != nil {
		return err
	}
	if _, err := os.Stat(koboshi); err != nil {
		return fmt.Errorf("no binary to test: %w; run make build, or set KOBOSHI", err)
	}
	if s := os.Getenv("KOBOSHI_WITHIN"); s != "" {
		if within, err = time.ParseDuration(s); err != nil {
			return fmt.Errorf("KOBOSHI_WITHIN: %w", err)
		}
	}
	return nil
}

// plane is one koboshi up in a separate process.
type plane struct {
	dir        string // working folder; the data directory is dir/.koboshi unless args say otherwise
	kubeconfig string
	config     *rest.Config
	client     kubernetes.Interface
	dynamic    dynamic.Interface

	cmd    *exec.Cmd
	output *transcript
	exited chan struct{}
}

// sharedPlane returns the plane for tests that use only their own namespace. It has
// profile full and three nodes, and keeps its state in memory.
func sharedPlane(t *testing.T) *plane {
	t.Helper()
	sharedOnce.Do(func() {
		dir, err := os.MkdirTemp("", "koboshi-conformance-")
		if err != nil {
			t.Fatal(err)
		}
		if shared, err = launch(dir, "--ephemeral", "--nodes=3"); err != nil {
			t.Fatal(err)
		}
	})
	if shared == nil {
		t.Fatal("the shared plane did not start; see the first test that needed it")
	}
	return shared
}

// startPlane runs koboshi up in a separate folder until the test ends.
func startPlane(t *testing.T, args ...string) *plane {
	t.Helper()
	return startPlaneIn(t, t.TempDir(), args...)
}

func startPlaneIn(t *testing.T, dir string, args ...string) *plane {
	t.Helper()
	p, err := launch(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

func launch(dir string, args ...string) (*plane, error) {
	ready := filepath.Join(dir, "ready")
	_ = os.Remove(ready)
	args = append([]string{"up", "--die-with-parent", "--ready-file=" + ready}, args...)
	args = append(args, strings.Fields(os.Getenv("KOBOSHI_UP_ARGS"))...)
	p := &plane{dir: dir, cmd: exec.Command(koboshi, args...), output: &transcript{}, exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.output, p.output
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.exited) }()
	if err := p.waitReady(ready); err != nil {
		p.stop()
		return nil, fmt.Errorf("koboshi %s: %w\n%s", strings.Join(args, " "), err, p.output)
	}
	return p, p.connect()
}

// transcript holds the output of a process. Tests can read it while the process runs.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *transcript) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *transcript) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (p *plane) waitReady(file string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		select {
		case <-p.exited:
			return false, errors.New("ended before it was ready")
		default:
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return false, nil
		}
		var content struct{ Kubeconfig string }
		err = json.Unmarshal(data, &content)
		p.kubeconfig = content.Kubeconfig
		return true, err
	})
}

func (p *plane) connect() (err error) {
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.kubeconfig); err != nil {
		return err
	}
	p.config.QPS, p.config.Burst = -1, -1
	if p.client, err = kubernetes.NewForConfig(p.config); err != nil {
		return err
	}
	p.dynamic, err = dynamic.NewForConfig(p.config)
	return err
}

// kill ends the process as abruptly as a power failure would, and returns when it is
// gone.
func (p *plane) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// stop ends the process with a signal, as a user would do it, and returns when it is
// gone.
func (p *plane) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(startWithin):
		p.kill()
	}
}

// kubectl runs the binary's own kubectl, and fails the test if kubectl fails.
func (p *plane) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.tryKubectl("", args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// tryKubectl runs kubectl with stdin as its input, and returns its standard output and
// standard error together.
func (p *plane) tryKubectl(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*within)
	defer cancel()
	cmd := exec.CommandContext(ctx, koboshi, append([]string{"kubectl"}, args...)...)
	// Each plane has its own kubectl cache, because another plane may have used the same
	// port before.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "KUBECACHEDIR="+filepath.Join(p.dir, "cache"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// apply applies manifests, and fails the test if they are refused.
func (p *plane) apply(t *testing.T, manifests string) {
	t.Helper()
	if out, err := p.tryKubectl(manifests, "apply", "-f", "-"); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}

// namespace creates a namespace and waits until Pods can be created in it. The plane must
// run the controller of service accounts. When the test ends, namespace deletes the
// namespace, but does not wait until it is gone.
func (p *plane) namespace(t *testing.T) string {
	t.Helper()
	ns, err := p.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		_ = p.client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{})
	})
	// Pods are refused until upstream's controller has created this ServiceAccount.
	eventually(t, "the default ServiceAccount", func(ctx context.Context) error {
		_, err := p.client.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return ns.Name
}

// eventually waits until ask returns nil. On a timeout it fails the test with the last
// error.
func eventually(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, within, true, func(ctx context.Context) (bool, error) {
		err := ask(ctx)
		// A timeout explains less than the error that came before it.
		if err == nil || ctx.Err() == nil || last == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %v: %v", what, within, last)
	}
}

// never calls ask repeatedly during the given time, and fails the test at the first error.
func never(t *testing.T, what string, duration time.Duration, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		return false, ask(t.Context())
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s: %v", what, err)
	}
}

package cri

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

// testImage stands for the test binary.
const testImage = "example.org/program:v1"

// limit is the timeout of every wait that has no other timeout.
const limit = time.Minute

// A plane is a running Runtime.
type plane struct {
	*Runtime
	t       *testing.T
	volumes string // the folder in which hostPaths are allowed
	logs    string
	pods    int
	boxes   int
	end     func()
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	subnet, claim, err := ClaimSubnet()
	if err != nil {
		t.Fatal(err)
	}
	volumes, user := t.TempDir(), int64(1234)
	r, err := New(Config{
		Programs: programs.Set{
			{Image: testImage, Path: self, Args: []string{programVerb, "print", "the image's arguments"}, Env: map[string]string{"OF": "image", "BOTH": "image",
				// Without this option, the race detector would wait for a second at the end
				// of each program.
				"GORACE": "atexit_sleep_ms=0"}},
			{Image: "other", Path: self, User: &user, WorkingDir: volumes},
		},
		Dir: filepath.Join(t.TempDir(), "cri"), HostPaths: []string{volumes}, Subnet: subnet,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	p := &plane{Runtime: r, t: t, volumes: volumes, logs: t.TempDir()}
	ended := false
	p.end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = claim.Close()
	}
	t.Cleanup(p.end)
	return p
}

// podConfig returns the configuration that the kubelet sends for a plain Pod.
func (p *plane) podConfig() *runtimeapi.PodSandboxConfig {
	p.pods++
	name := "pod-" + string(rune('a'+p.pods-1))
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Uid: name, Namespace: "default"},
		Hostname: name, LogDirectory: filepath.Join(p.logs, name), Labels: map[string]string{"pod": name},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: separate()}},
	}
}

func separate() *runtimeapi.NamespaceOption {
	return &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
}

// A pod is a sandbox.
type pod struct {
	*plane
	id     string
	config *runtimeapi.PodSandboxConfig
}

func (p *plane) pod(change ...func(*runtimeapi.PodSandboxConfig)) *pod {
	p.t.Helper()
	config := p.podConfig()
	for _, f := range change {
		f(config)
	}
	id, err := p.RunPodSandbox(p.t.Context(), config, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return &pod{p, id, config}
}

// address returns the address on which the Pod's programs listen.
func (p *pod) address() string {
	p.t.Helper()
	answer, err := p.PodSandboxStatus(p.t.Context(), p.id, false)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.GetStatus().GetNetwork().GetIp()
}

// containerConfig returns the configuration that the kubelet sends for a
// container that runs args.
func containerConfig(args ...string) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
		Image:    &runtimeapi.ImageSpec{Image: testImage},
		Args:     append([]string{programVerb}, args...), Labels: map[string]string{"name": "main"},
		Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: separate()}},
	}
}

// A box is a container.
type box struct {
	*pod
	id string
}

func (p *pod) start(config *runtimeapi.ContainerConfig) *box {
	p.t.Helper()
	p.boxes++
	config.LogPath = fmt.Sprintf("main/%d.log", p.boxes)
	id, err := p.CreateContainer(p.t.Context(), p.id, config, p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.StartContainer(p.t.Context(), id); err != nil {
		p.t.Fatal(err)
	}
	return &box{p, id}
}

// run starts a container, waits until it exits, and returns its output.
func (p *pod) run(config *runtimeapi.ContainerConfig) (output string, status *runtimeapi.ContainerStatus) {
	p.t.Helper()
	b := p.start(config)
	status = b.exited()
	return b.output(), status
}

func (b *box) status() *runtimeapi.ContainerStatus {
	b.t.Helper()
	answer, err := b.ContainerStatus(b.t.Context(), b.id, false)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.GetStatus()
}

func (b *box) exited() *runtimeapi.ContainerStatus {
	b.t.Helper()
	var status *runtimeapi.ContainerStatus
	b.eventually("the container exits", func() bool {
		status = b.status()
		return status.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED
	})
	return status
}

// rawLog returns the content of the log file.
func (b *box) rawLog() string {
	b.t.Helper()
	text, err := os.ReadFile(b.status().GetLogPath())
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// output returns both streams of the program's output, read from the log.
func (b *box) output() string {
	b.t.Helper()
	var all bytes.Buffer
	for line := range strings.Lines(b.rawLog()) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(parts) != 4 {
			b.t.Fatalf("log line %q", line)
		}
		all.WriteString(parts[3])
		if parts[2] == "F" {
			all.WriteByte('\n')
		}
	}
	return all.String()
}

// says waits until the program has written the text.
func (b *box) says(text string) {
	b.t.Helper()
	b.eventuallyOr(func() string { return "the program says " + text + ", not\n" + b.output() }, func() bool {
		if strings.Contains(b.output(), text) {
			return true
		}
		if s := b.status(); s.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED && !strings.Contains(b.output(), text) {
			b.t.Fatalf("the program has exited with code %d without saying %s, but:\n%s", s.GetExitCode(), text, b.output())
		}
		return false
	})
}

func (p *plane) eventually(what string, f func() bool) {
	p.t.Helper()
	p.eventuallyOr(func() string { return what }, f)
}

func (p *plane) eventuallyOr(what func() string, f func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(limit)
	for !f() {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited %v until %s", limit, what())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// volume creates a folder with a file.
func (p *plane) volume(name, file, text string) string {
	p.t.Helper()
	dir := filepath.Join(p.volumes, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return dir
}

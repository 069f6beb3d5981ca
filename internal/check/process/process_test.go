package process_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/process"
)

// roleName is the environment variable that turns this test program into a controller.
const roleName = "PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role, argument, _ := strings.Cut(os.Getenv(roleName), " "); role {
	case "":
		os.Exit(m.Run())
	case "listen":
		listen(argument)
	case "parent":
		parent(argument)
	default:
		viewRole(role, argument)
	}
}

// listen greets every client.
func listen(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, "cannot listen:", err)
		os.Exit(3)
	}
	_, _ = fmt.Fprintln(os.Stdout, "listening on", listener.Addr())
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(conn, "%d", os.Getpid())
		_ = conn.Close()
	}
}

// parent starts a child and waits to be killed.
func parent(script string) {
	p, err := process.Start(context.Background(), process.Spec{Command: []string{"sh", "-c", script}})
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, "child", p.PID())
	select {}
}

// lines is an Output that lets tests wait for lines.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newLines() *lines { return &lines{changed: make(chan struct{})} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(b)
}

// await waits for a line that begins with prefix, and returns the rest of it.
func (l *lines) await(t *testing.T, p *process.Process, prefix string) string {
	t.Helper()
	for {
		l.mu.Lock()
		text, changed := l.text.String(), l.changed
		l.mu.Unlock()
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, prefix); ok && strings.HasSuffix(rest, "\n") {
				return strings.TrimSpace(rest)
			}
		}
		select {
		case <-changed:
		case <-p.Exited():
			code, output := p.Exit()
			t.Fatalf("exited with %d before it printed %q:\n%s", code, prefix, output)
		case <-t.Context().Done():
			t.Fatalf("never printed %q", prefix)
		}
	}
}

func start(t *testing.T, s process.Spec) *process.Process {
	t.Helper()
	p, err := process.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func shell(script string) process.Spec {
	return process.Spec{Command: []string{"sh", "-c", script}}
}

func TestItReportsHowItEnded(t *testing.T) {
	for _, c := range []struct {
		name, script, output string
		code                 int
	}{
		{"on its own", "echo out; echo err >&2; exit 7", "out\nerr\n", 7},
		{"by a signal", "echo before; kill -ABRT $$", "before\n", 134},
		{"well", "exit 0", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, output := start(t, shell(c.script)).Exit()
			if code != c.code || output != c.output {
				t.Errorf("got %d and %q, want %d and %q", code, output, c.code, c.output)
			}
		})
	}
}

func TestEndOfALongOutputIsKeptInWholeLines(t *testing.T) {
	var all bytes.Buffer
	s := shell("i=0; while [ $i -lt 4000 ]; do echo line $i; i=$((i+1)); done; echo panic: the end")
	s.Output = &all
	_, output := start(t, s).Exit()
	if !strings.HasSuffix(output, "\npanic: the end\n") || !strings.HasPrefix(output, "line ") {
		t.Errorf("the end is %.40q…%.40q", output, output[max(0, len(output)-40):])
	}
	if len(output) >= all.Len() || !strings.HasSuffix(all.String(), output) || !strings.HasPrefix(all.String(), "line 0\n") {
		t.Errorf("of %d bytes, %d were kept: the output is incomplete, or the kept text is not its end", all.Len(), len(output))
	}
}

func TestItsEnvironmentIsTheGivenOne(t *testing.T) {
	t.Setenv("ANOTHER_SECRET", "hidden")
	s := process.Spec{Command: []string{"/usr/bin/env"}, Env: []string{"LANG=C", "KUBECONFIG=/kubeconfig", "LANG=ja_JP.UTF-8"}}
	_, output := start(t, s).Exit()
	for line := range strings.Lines(output) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "KUBECONFIG", "LANG":
			if !slices.Contains(s.Env[1:], name+"="+value) {
				t.Errorf("%s is %s", name, value)
			}
		case "KOBOSHI_INSTANCE":
		default:
			t.Errorf("the environment also contains %s", line)
		}
	}
	if !strings.Contains(output, "KUBECONFIG=/kubeconfig\n") {
		t.Errorf("KUBECONFIG is missing in:\n%s", output)
	}
}

func TestFailureToStartIsReported(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{nil, {""}, {"no-such-program-anywhere"}, {"/no/such/program"}, {text}} {
		if p, err := process.Start(t.Context(), process.Spec{Command: command}); err == nil {
			p.Kill()
			t.Errorf("%q was started", command)
		} else if len(command) == 1 && !strings.Contains(err.Error(), command[0]) {
			t.Errorf("the error does not name %q: %v", command, err)
		}
	}
	if _, err := process.Start(t.Context(), process.Spec{Command: []string{"sh"}, Address: netip.MustParseAddr("192.0.2.1")}); err == nil && runtime.GOOS == "linux" {
		t.Error("a foreign address was accepted")
	}
}

func TestStopLetsItExitOnItsOwn(t *testing.T) {
	out := newLines()
	s := shell(`trap 'echo cleaning; exit 5' TERM; echo ready; while :; do sleep 0.01; done`)
	s.Output = out
	p := start(t, s)
	out.await(t, p, "ready")
	p.Stop(time.Minute)
	if code, output := p.Exit(); code != 5 || !strings.Contains(output, "cleaning") {
		t.Errorf("it ended with %d:\n%s", code, output)
	}
}

func TestTerminateAsksOnlyOnceAndReturnsBeforeTheProcessExits(t *testing.T) {
	out := newLines()
	s := shell(`n=0; trap 'n=$((n+1)); echo asked' TERM; echo ready; while [ ! -e "$GO" ]; do sleep 0.01; done; exit $n`)
	file := filepath.Join(t.TempDir(), "go")
	s.Env, s.Output = append(s.Env, "GO="+file), out
	p := start(t, s)
	out.await(t, p, "ready")
	p.Terminate()
	out.await(t, p, "asked") // it still runs
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if killed := p.Await(time.Minute); killed {
		t.Error("it was killed")
	}
	if code, _ := p.Exit(); code != 1 {
		t.Errorf("it was asked to exit %d times", code)
	}
}

func TestAwaitReportsThatTheGracePeriodWasNotEnough(t *testing.T) {
	if p := start(t, shell("sleep 1000")); !p.Await(time.Millisecond) {
		t.Error("it was not killed")
	}
}

func TestStopKillsAProcessThatDoesNotExit(t *testing.T) {
	out := newLines()
	s := shell(`trap '' TERM; echo ready; while :; do sleep 0.01; done`)
	s.Output = out
	p := start(t, s)
	out.await(t, p, "ready")
	p.Stop(time.Millisecond)
	if code, _ := p.Exit(); code != 137 {
		t.Errorf("it ended with %d", code)
	}
}

func TestItEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := process.Start(ctx, shell("sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if code, _ := p.Exit(); code != 137 {
		t.Errorf("it ended with %d", code)
	}
	p.Kill() // has no effect any more
	p.Stop(time.Minute)
}

func TestManyMayKillItAtOnce(t *testing.T) {
	p := start(t, shell("sleep 1000"))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(p.Kill)
	}
	wait.Wait()
	if code, _ := p.Exit(); code != 137 {
		t.Errorf("it ended with %d", code)
	}
}

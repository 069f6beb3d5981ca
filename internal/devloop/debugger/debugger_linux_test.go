package debugger

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/process"
)

// within limits how long the tests wait for anything.
const within = 2 * time.Minute

// built is the folder with dlv and the program of testdata.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "koboshi-debugger-")
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"build", "-C", "../../../hack/tools", "-o", dir + "/dlv", "-ldflags=-s -w", "github.com/go-delve/delve/cmd/dlv"},
		{"build", "-o", dir + "/program", "./testdata/program"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.Join(err, errors.New(string(out)))
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) has(text string) func() bool {
	return func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return strings.Contains(o.text.String(), text)
	}
}

func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(within); !reached(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited %s for %s", within, what)
		}
	}
}

// debugged starts the program of testdata under Delve, and watches it until Delve has exited.
func debugged(t *testing.T, stopped func(), args ...string) (d *Delve, p *process.Process, out *output, watched chan struct{}) {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if d, err = Find(); err != nil {
		t.Fatal(err)
	}
	out = &output{}
	p, err = process.Start(t.Context(), process.Spec{Command: d.Command(append([]string{filepath.Join(dir, "program")}, args...)), Env: os.Environ(), Output: out})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	watched = make(chan struct{})
	go func() { d.Watch(p, stopped); close(watched) }()
	await(t, "the program", out.has("started "+strings.Join(args, " ")))
	return d, p, out, watched
}

// awaitClosed fails the test if the channel is not closed in time.
func awaitClosed(t *testing.T, what string, closed <-chan struct{}) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(within):
		t.Fatalf("waited %s for %s", within, what)
	}
}

func TestAProgramUnderDelveIsAskedToExit(t *testing.T) {
	d, p, out, watched := debugged(t, func() { t.Error("the program counts as stopped") }, "--wait", "for", "it")
	d.Terminate(p, within)
	await(t, "the program's last line", out.has("asked to exit"))
	awaitClosed(t, "the end of Delve", watched)
}

func TestDelveEndsWithItsProgram(t *testing.T) {
	_, _, _, watched := debugged(t, func() {}, "--exit")
	awaitClosed(t, "the end of Delve", watched)
}

func TestAProgramThatPanicsStopsInTheDebuggerAndIsNotWaitedFor(t *testing.T) {
	stopped := make(chan struct{})
	d, p, out, watched := debugged(t, func() { close(stopped) }, "--panic")
	awaitClosed(t, "the report that the program is stopped", stopped)
	await(t, "the frame that panics", out.has("main.main"))
	d.Terminate(p, 10*within) // the test would time out if this waited
	p.Stop(within)
	awaitClosed(t, "the end of Delve", watched)
}

func TestWithoutDelveTheCommandThatInstallsItIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Find(); !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "go install github.com/go-delve/delve/cmd/dlv@latest") {
		t.Errorf("the error is %v", err)
	}
}

package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

// If a test starts this binary as a kubelet, the NodeName in the kubelet's Config determines how
// TestMain behaves.
func TestMain(m *testing.M) {
	if !Called() {
		os.Exit(m.Run())
	}
	lifeline, reports := inherited()
	var c Config
	if err := json.NewDecoder(lifeline).Decode(&c); err != nil {
		panic(err)
	}
	switch c.NodeName {
	case "forbidden":
		_ = json.NewEncoder(reports).Encode(report{Forbidden: true})
	case "fails":
		_ = json.NewEncoder(reports).Encode(report{Error: "out of luck"})
	case "dies":
		os.Exit(3)
	case "runs":
		child := exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			panic(err)
		}
		dir, _ := os.Getwd()
		_, _ = fmt.Fprintln(os.Stdout, os.Getpid(), dir)
		_ = json.NewEncoder(reports).Encode(report{})
		_ = reports.Close()
		_, _ = io.Copy(io.Discard, lifeline)
	}
	os.Exit(0)
}

func start(t *testing.T, what string) (*Process, *os.File, error) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	p, err := Start(Config{NodeName: what, Programs: programs.Set{{Image: "web"}}}, log)
	if errors.Is(err, ErrForbidden) && what != "forbidden" {
		t.Skip(err)
	}
	return p, log, err
}

func TestAProcessThatDoesNotBeginSaysWhy(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{"forbidden": "sysctl", "fails": "out of luck", "dies": "ended before it was ready"} {
		_, _, err := start(t, what)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that contains %q", what, err, want)
		}
		if errors.Is(err, ErrForbidden) != (what == "forbidden") {
			t.Errorf("%s: the error is ErrForbidden: %t", what, errors.Is(err, ErrForbidden))
		}
	}
}

func TestStopLeavesNothingOfWhatWasStarted(t *testing.T) {
	t.Parallel()
	p, log, err := start(t, "runs")
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(log.Name())
	here, _ := os.Getwd()
	if want := "1 " + here + "\n"; string(said) != want || err != nil {
		t.Errorf("the process wrote %q (%v), want %q: its process ID in its own namespace, and this test's working directory", said, err, want)
	}
	children := childrenOf(t, p.cmd.Process.Pid)
	if len(children) != 1 {
		t.Fatalf("children: %v", children)
	}
	if p.Err() != nil {
		t.Error(p.Err())
	}
	p.Stop()
	if alive(children[0]) {
		t.Error("a child is left")
	}
	if p.Err() == nil {
		t.Error("Err does not report that the process has ended")
	}
	p.Stop() // stopping again is harmless
}

func TestTheEndOfTheLifelineIsTheEnd(t *testing.T) {
	t.Parallel()
	p, _, err := start(t, "runs")
	if err != nil {
		t.Fatal(err)
	}
	children := childrenOf(t, p.cmd.Process.Pid)
	if len(children) != 1 {
		t.Fatalf("children: %v", children)
	}
	// The kernel closes the lifeline in the same way when this process is
	// killed.
	if err := p.lifeline.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
	case <-time.After(5 * time.Minute):
		t.Fatal("the kubelet process did not end")
	}
	if alive(children[0]) {
		t.Error("a child is left")
	}
}

// childrenOf lists the child processes of every thread of the process, because
// the goroutine that starts a program may run on any thread.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(string(file)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}

func alive(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

package cri

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processes counts the other processes that this process sees.
func processes(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			n++
		}
	}
	return n
}

func TestNoProcessIsLeftWhenTheRuntimeEnds(t *testing.T) {
	p := newPlane(t)
	before := processes(t)
	for range 3 {
		b := p.pod().start(containerConfig("spawn", "ignore", ";", "ignore"))
		// Programs that are still starting would take processor time from the program that
		// has only a second to stop.
		b.says("ready")
		entered := filepath.Join(p.volumes, b.id)
		go func() { _, _, _ = b.ExecSync(t.Context(), b.id, b.command("write", entered, "x", ";", "block"), 0) }()
		p.eventually("the command runs in the container", func() bool { _, err := os.Stat(entered); return err == nil })
	}
	polite := p.pod().start(containerConfig("await", "SIGTERM"))
	polite.says("ready")
	start := time.Now()
	p.end()
	if took := time.Since(start); took > goodbye+10*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if s := polite.status(); s.GetExitCode() != 0 {
		t.Errorf("a program that stops on SIGTERM did not get it: exit code %d", s.GetExitCode())
	}
	p.eventually("all processes are gone", func() bool { return processes(t) <= before })
	if _, err := p.RunPodSandbox(t.Context(), p.podConfig(), ""); err == nil {
		t.Error("a Pod started after the runtime had ended")
	}
}

// victimVerb makes the test binary act as a kubelet process with a container,
// so that a test can kill the process.
const victimVerb = "victim"

// victim starts a container that keeps running, and prints a line once it is
// running.
func victim(dir string) int {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "victim", F: func(t *testing.T) {
		p := newPlane(t)
		p.pod().start(containerConfig("write", filepath.Join(dir, "started"), "x", ";", "spawn", "ignore", ";", "ignore")).says("ready")
		fmt.Fprintln(os.Stdout, "started")
		<-t.Context().Done()
	}}}, nil, nil)
	return 0
}

func TestNoProcessIsLeftWhenTheRuntimeIsKilled(t *testing.T) {
	before := processes(t)
	command := exec.Command("/proc/self/exe", victimVerb, t.TempDir())
	command.SysProcAttr, command.Stderr = planeNamespaces(), os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.HasPrefix(lines.Text(), "started"); {
		t.Log(lines.Text())
	}
	if n := processes(t); n < before+3 {
		t.Errorf("%d processes run; want the runtime, a program and its child", n-before)
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	if n := processes(t); n > before {
		t.Errorf("%d processes are left", n-before)
	}
}

func TestNewSweepsWhatAnEarlierStartLeft(t *testing.T) {
	p := newPlane(t)
	leftover := filepath.Join(p.config.Dir, "leftover")
	if err := os.WriteFile(leftover, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := New(p.config)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.listener.Close()
	if _, err := os.Stat(leftover); err == nil {
		t.Error("the file of the earlier start still exists")
	}
	if list, err := again.ListPodSandbox(t.Context(), nil); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tests of koboshi check call it as a user or CI does. They check the controller in
// conformance/checked. The scenarios are in testdata/check:
//
//	create   a Widget is created
//	life     a Widget is created, grows, and is deleted
//	secret   as create, but the controller copies a Secret from the scenario
//
// The tests check exit codes and output, never durations.

// checkWithin is the time limit for a check, in case it hangs.
const checkWithin = 20 * time.Minute

var (
	checkedOnce sync.Once
	checkedDir  string // holds the controller; TestMain removes it
)

// checked builds the controller once and returns its path.
func checked(t *testing.T) string {
	t.Helper()
	checkedOnce.Do(func() {
		dir, err := os.MkdirTemp("", "koboshi-conformance-")
		if err != nil {
			t.Fatal(err)
		}
		checkedDir = dir
		build := exec.Command("go", "build", "-o", filepath.Join(dir, "checked"), "./checked")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
	path := filepath.Join(checkedDir, "checked")
	if _, err := os.Stat(path); err != nil {
		t.Fatal("the controller was not built; see the first test that needed it")
	}
	return path
}

// A checking is one run of koboshi check in a separate folder, which holds the files
// of testdata/check.
type checking struct {
	dir            string
	cmd            *exec.Cmd
	stdout, stderr *transcript
	exited         chan struct{}
}

// fill copies the files of testdata/check into a folder. A folder that several tests use in
// parallel must be filled before they start, because fill stops at the first file that
// already exists.
func fill(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "check"))); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
}

// checkIn creates the folder and the command of a checking.
func checkIn(t *testing.T, dir string, args ...string) *checking {
	t.Helper()
	fill(t, dir)
	c := &checking{dir: dir, stdout: &transcript{}, stderr: &transcript{}, exited: make(chan struct{})}
	c.cmd = exec.Command(koboshi, append([]string{"check"}, args...)...)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = dir, c.stdout, c.stderr
	return c
}

func (c *checking) start(t *testing.T) {
	t.Helper()
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.cmd.Wait(); close(c.exited) }()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.exited
	})
}

// end waits until the checking ends, and checks its exit code.
func (c *checking) end(t *testing.T, code int) {
	t.Helper()
	select {
	case <-c.exited:
	case <-time.After(checkWithin):
		t.Fatalf("koboshi %s is still running after %v\n%s", strings.Join(c.cmd.Args[1:], " "), checkWithin, c.stderr)
	}
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("koboshi %s: exit code %d, want %d\n%s%s", strings.Join(c.cmd.Args[1:], " "), got, code, c.stdout, c.stderr)
	}
}

// check runs koboshi check in dir to its end, and checks its exit code.
func check(t *testing.T, dir string, code int, args ...string) *checking {
	t.Helper()
	c := checkIn(t, dir, args...)
	c.start(t)
	c.end(t, code)
	return c
}

// ofWidgets returns arguments to check the controller with a scenario and more flags. The arguments
// limit the check to one plane, which is enough for the tests, and to a short observation of each
// rest, because the controller never pauses for long.
func ofWidgets(t *testing.T, scenario string, flags ...string) []string {
	t.Helper()
	args := []string{"--crds=widgets.yaml", "--scenario=" + scenario, "--workers=1", "--seed=7", "--profile=gc", "--horizon=1s"}
	return slices.Concat(args, flags, []string{"--", checked(t)})
}

// verdicts contains the words that must not appear if the controller could not be checked.
var verdicts = []string{
	"clean", "DIVERGED", "HOT LOOP", "LEAK", "DESTRUCTIVE BLIP", "PATH DEPENDENT", "CRASHED", "RBAC MISSING", "SPLIT BRAIN",
}

// saysNothing checks the output for a controller that could not be checked: exit code 2,
// a last line with the reason, no other complaint, and no verdict. In the reason, … stands for any
// text.
func (c *checking) saysNothing(t *testing.T, why string) {
	t.Helper()
	c.end(t, 2)
	stderr := c.stderr.String()
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	last := lines[len(lines)-1]
	said := strings.HasPrefix(last, "koboshi: ")
	for part := range strings.SplitSeq(why, "…") {
		said = said && strings.Contains(last, part)
	}
	if !said {
		t.Errorf("the last line does not begin with koboshi: and contain %q:\n%s", why, stderr)
	}
	for _, line := range lines[:len(lines)-1] {
		if !isProgress(line) {
			t.Errorf("a line shows neither progress nor the reason: %s", line)
		}
	}
	if out := c.stdout.String(); out != "" {
		t.Errorf("there is output on standard output: %s", out)
	}
	for _, verdict := range verdicts {
		if strings.Contains(stderr, verdict) {
			t.Errorf("standard error contains the verdict %s: %s", verdict, stderr)
		}
	}
	if files, _ := os.ReadDir(filepath.Join(c.dir, ".koboshi")); len(files) > 0 {
		t.Errorf("the check leaves the files %v", files)
	}
}

// isProgress reports whether a line shows the progress of a check.
func isProgress(line string) bool {
	return slices.ContainsFunc([]string{"seed ", "profile ", "starting ", "learning ", "injecting faults"}, func(begin string) bool { return strings.HasPrefix(line, begin) })
}

// edited writes a copy of a file of testdata/check in which from is replaced with to.
func edited(t *testing.T, dir, name, from, to string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "check", name))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(from)) {
		t.Fatalf("%s does not hold %q", name, from)
	}
	writeFile(t, filepath.Join(dir, "edited-"+name), strings.ReplaceAll(string(data), from, to))
	return "edited-" + name
}

// started waits until the controller of a checking is running.
func (c *checking) started(t *testing.T) {
	t.Helper()
	eventually(t, "the controller to be started", func(context.Context) error {
		select {
		case <-c.exited:
			t.Fatalf("the check ended before it started the controller: %s", c.stderr)
		default:
		}
		for _, pid := range descendants(t, c.cmd.Process.Pid) {
			if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.HasPrefix(command, []byte(checkedDir)) {
				return nil
			}
		}
		return errors.New("no such process")
	})
}

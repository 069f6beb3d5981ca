package checktest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// programVariable turns a test of this package into a user's suite. The environment variable names
// a program that replaces koboshi.
const programVariable = "CHECKTEST_USER"

// TestUser stands for a user's suite. The other tests run it in a separate process, because
// they expect it to fail.
func TestUser(t *testing.T) {
	if os.Getenv(programVariable) == "" {
		t.Skip("other tests run it")
	}
	Run(t, Project("."), Budget(time.Minute), Seed(7), Flags("--workers=1"))
}

const foundReport = `{"seed": 7, "runs": 12, "findings": [
  {"verdict": "DIVERGED", "scenario": "life", "step": "create", "fault": {"kind": "kill-lost"}, "sentence": "killed after POST; Secret b is missing",
   "differences": [{"object": "Secret default/b", "want": "{}"}], "reproduced": 3, "attempts": 3, "replay": "koboshi check replay .koboshi/findings/x.json"},
  {"verdict": "HOT LOOP", "scenario": "life", "step": "idle", "sentence": "it writes for ever", "reproduced": 2, "attempts": 3}]}`

func TestEachFindingIsAFailedSubtestWithItsReplay(t *testing.T) {
	t.Parallel()
	out, code := suite(t, "cat <<'END'\n"+foundReport+"\nEND\nexit 1", nil)
	for _, want := range []string{
		"--- FAIL: TestUser/DIVERGED_Secret_default:b_kill-lost",
		"finding 1 of 2: DIVERGED, scenario life, step create, reproduced 3 of 3",
		"killed after POST; Secret b is missing",
		"want {}",
		"got  nothing",
		"replay: koboshi check replay .koboshi/findings/x.json",
		"seed: 7",
		"--- FAIL: TestUser/HOT_LOOP_no_fault",
		"it writes for ever",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not contain %q", want)
		}
	}
	if code != 1 || t.Failed() {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestACheckWithoutFindingsPassesAndSaysHowMuchItTried(t *testing.T) {
	t.Parallel()
	out, code := suite(t, `echo "$@" >&2; [ "$*" = "check -o json --budget=1m0s --seed=7 --workers=1" ] && echo '{"seed": 7, "runs": 12, "findings": [], "notes": ["2 objects are not compared"]}'`, nil)
	if code != 0 || !strings.Contains(out, "--- PASS: TestUser") || !strings.Contains(out, "no findings in 12 runs (seed 7)") || !strings.Contains(out, "2 objects are not compared") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestACheckWithoutAResultFailsWithTheReason(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`echo 'koboshi: could not check: no samples' >&2; exit 2`:                                                                 "exit code 2\n        koboshi: could not check: no samples",
		`echo '{"inconclusive": [{"scenario": "life", "why": "never idle"}, {"scenario": "life", "why": "never idle"}]}'; exit 2`: "has no result:\n        scenario life: never idle\n---",
		`kill -KILL $$`:                   "exit code -1",
		`echo '{"findings": []}'; exit 1`: "exit code 1", // not a report that koboshi writes
		`echo not JSON`:                   "exit code 0",
	} {
		if out, code := suite(t, script, nil); code != 1 || !strings.Contains(out, want) || strings.Contains(out, "--- PASS: TestUser") {
			t.Errorf("%s: exit code %d, want 1 and %q\n%s", script, code, want, out)
		}
	}
}

func TestWithoutTheProgramTheTestIsSkippedExceptInCI(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  []string
		want string
		code int
	}{
		"on a person's machine":    {[]string{"KOBOSHI=", "CI="}, "--- SKIP: TestUser", 0},
		"in CI":                    {[]string{"KOBOSHI=", "CI=true"}, "there is no program koboshi on the PATH", 1},
		"a variable that is wrong": {[]string{"KOBOSHI=/does/not/exist", "CI="}, "KOBOSHI names no program", 1},
	} {
		if out, code := suite(t, "exit 3", append(test.env, "PATH="+t.TempDir())); code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", name, code, test.code, test.want, out)
		}
	}
}

func TestACheckThatTakesTooLongIsInterruptedAndNamesTheRemedy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	program := script(t, `trap 'echo interrupted >&2; exit 2' INT; : > '`+started+`'; while :; do sleep 0.01; done`)
	go func() {
		defer cancel()
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for range ticker.C {
			if _, err := os.Stat(started); err == nil || ctx.Err() != nil {
				return
			}
		}
	}()
	_, err := check(ctx, program, Project("."), settings{})
	if err == nil || !strings.Contains(err.Error(), "checktest.Budget") || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v", err)
	}
}

func TestTheCommandComesAfterAllFlags(t *testing.T) {
	t.Parallel()
	got := settings{flags: []string{"--crds=crds"}}.arguments(Command("python3", "controller.py"))
	if want := []string{"check", "-o", "json", "--crds=crds", "--", "python3", "controller.py"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheDefaultBudgetLeavesAThirdOfTheTimeForTheBuild(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{10 * time.Minute: 400 * time.Second, 30 * time.Second: 20 * time.Second, time.Second: time.Second, -time.Second: time.Second} {
		if got := budgetWithin(left); got != want {
			t.Errorf("with %s left: %s, want %s", left, got, want)
		}
	}
}

func TestAShortBudgetIsNotTakenForNoLimit(t *testing.T) {
	t.Parallel()
	if got := (settings{budget: 100 * time.Millisecond}).arguments(Project(".")); !slices.Contains(got, "--budget=1s") {
		t.Errorf("%q", got)
	}
}

// suite runs TestUser with a shell script in place of koboshi.
func suite(t *testing.T, koboshi string, env []string) (output string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^TestUser$")
	cmd.Env = append(os.Environ(), programVariable+"=1", "KOBOSHI="+script(t, koboshi))
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func script(t *testing.T, body string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "koboshi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBug is the suite of a user who checks a controller of the track record. Another test
// runs it.
func TestBug(t *testing.T) {
	bugs, folder := os.Getenv(programVariable), os.Getenv("CHECKTEST_BUG")
	if folder == "" {
		t.Skip("another test runs it")
	}
	Run(t, Command(bugs, "b1"), Seed(42), Flags("--profile=gc", "--crds="+filepath.Join(folder, "crd.yaml"),
		"--scenario="+filepath.Join(folder, "scenario.yaml"), "--faults=kill-lost", "--workers=1", "--findings="+t.TempDir()))
}

func TestTheProgramFindsAKnownBug(t *testing.T) {
	koboshi, err := filepath.Abs(filepath.Join("..", "bin", "koboshi"))
	if named := os.Getenv("KOBOSHI"); named != "" {
		koboshi, err = filepath.Abs(named)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(koboshi); err != nil {
		t.Fatalf("no program to test: %v; run make build, or set KOBOSHI", err)
	}
	track, err := filepath.Abs(filepath.Join("..", "bugs"))
	if err != nil {
		t.Fatal(err)
	}
	bugs := filepath.Join(t.TempDir(), "bugs")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bugs, ".")
	build.Dir, build.Env = track, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the controllers: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^TestBug$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), "KOBOSHI="+koboshi, programVariable+"="+bugs, "CHECKTEST_BUG="+filepath.Join(track, "b1-first-exists"))
	out, err := cmd.CombinedOutput()
	found := regexp.MustCompile(`--- FAIL: TestBug/DIVERGED_Secret_\S*demo-ssl-internal_kill-lost`)
	if err == nil || !found.Match(out) || !strings.Contains(string(out), "replay: koboshi check replay ") {
		t.Errorf("%v\n%s", err, out)
	}
}

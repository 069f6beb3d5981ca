package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestCheckRefusesWrongUseInOneLineBeforeAnyPlaneIsStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir)
	typo := edited(t, dir, "create.yaml", "  apply:", "  aply:")
	unknown := edited(t, dir, "life.yaml", "- name: grow", "- name: grow\n  retries: 3")
	for _, test := range []struct {
		name string
		args []string
		why  string
	}{
		{"no scenario", []string{"--crds=widgets.yaml", "--", checked(t)}, "there are no samples from which to generate scenarios"},
		{"no project", nil, "koboshi: "},
		{"no controller", []string{"--crds=widgets.yaml", "--scenario=create.yaml", "--", "./missing"}, "cannot start the controller ./missing"},
		{"no definitions", []string{"--crds=none.yaml", "--scenario=create.yaml", "--", checked(t)}, "none.yaml"},
		{"no scenario file", ofWidgets(t, "none.yaml"), "none.yaml"},
		{"typo", ofWidgets(t, typo), typo + `:6: step "create": aply: unknown field; did you mean apply?`},
		{"unknown field", ofWidgets(t, unknown), unknown + `:12: step "grow": retries: unknown field`},
		{"same scenario twice", ofWidgets(t, "create.yaml", "--scenario=create.yaml"), "create.yaml also has a scenario named create"},
		{"unknown fault", ofWidgets(t, "create.yaml", "--faults=kil-lost"), `unknown kind "kil-lost"; choose from [kill-before kill-lost`},
		{"shard beyond", ofWidgets(t, "create.yaml", "--shard=3/2"), `--shard is "3/2"; write PART/PARTS, such as 1/4`},
		{"shard zero", ofWidgets(t, "create.yaml", "--shard=0/2"), `--shard is "0/2"`},
		{"no form", ofWidgets(t, "create.yaml", "-o=pdf"), `unknown format "pdf"; choose from text, json, junit, sarif, codequality, html, markdown`},
		{"page on a terminal", ofWidgets(t, "create.yaml", "-o=html"), "name a file, such as -o html=report.html"},
		{"two on standard output", ofWidgets(t, "create.yaml", "-o=json", "-o=junit"), "only one format can go to standard output"},
		{"too many workers", ofWidgets(t, "create.yaml", "--workers=65"), "--workers is 65"},
		{"no profile", ofWidgets(t, "create.yaml", "--profile=most"), "most"},
		{"unknown flag", ofWidgets(t, "create.yaml", "--fault=kill-lost"), "unknown flag: --fault"},
		{"two stories", ofWidgets(t, "create.yaml", "--driver=true"), "--driver and --scenario both say what happens in the cluster; omit one of them"},
		{"suite and samples", []string{"--crds=widgets.yaml", "--driver=true", "--samples=.", "--", checked(t)}, "--samples names samples from which to generate scenarios, but --driver uses a test suite instead"},
		{"suite and inputs", []string{"--crds=widgets.yaml", "--driver=true", "--inputs", "--", checked(t)}, "--inputs changes the fields of samples, but --driver uses a test suite instead"},
		{"suite and paths", []string{"--crds=widgets.yaml", "--driver=true", "--paths", "--", checked(t)}, "--paths makes scenarios from samples, but --driver uses a test suite instead"},
		{"no suite", []string{"--crds=widgets.yaml", "--driver= ", "--", checked(t)}, "--driver is empty; give it the command of a test suite"},
		{"time for no suite", ofWidgets(t, "create.yaml", "--driver-timeout=1m"), "--driver-timeout limits the command of --driver, which is not given"},
		{"no time for a suite", []string{"--crds=widgets.yaml", "--driver=true", "--driver-timeout=0", "--", checked(t)}, "--driver-timeout is 0s; use a positive time such as 5m"},
		{"no dashes", []string{"--crds=widgets.yaml", "./checked"}, "put the controller's command after --"},
		{"replay of nothing", []string{"replay", "none.json"}, "none.json"},
		{"replay of a scenario", []string{"replay", "create.yaml"}, "create.yaml"},
		{"report of nothing", []string{"report"}, "name at least one"},
		{"report of a scenario", []string{"report", "create.yaml"}, "create.yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			check(t, dir, 2, test.args...).saysNothing(t, test.why)
		})
	}
}

func TestCheckSaysNothingWhereNothingCanBeLearnt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir)
	invalid := edited(t, dir, "widgets.yaml", "size: {type: string}", "size: {type: text}")
	refused := edited(t, dir, "create.yaml", "size: small", "size: longer-than-twenty-letters")
	impatient := edited(t, dir, "life.yaml", "steps:", "rest: {timeout: 2s}\nsteps:")
	const elsewhere = "elsewhere.yaml"
	writeFile(t, filepath.Join(dir, elsewhere), "apiVersion: check.koboshi.dev/v1\nkind: Scenario\nname: elsewhere\nsteps:\n- name: create\n"+
		"  apply:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: other}}\n")
	hopeless := edited(t, dir, "secret.yaml", "equals: small", "equals: tiny")
	for _, test := range []struct {
		name string
		args []string
		why  string
	}{
		{"controller ends", ofWidgets(t, "create.yaml", "--env=BUG=exit"), " times, the last time with code 1: checked: the controller exits, because BUG is set to exit"},
		{"definition", []string{"--crds=" + invalid, "--scenario=create.yaml", "--workers=1", "--", checked(t)}, "CustomResourceDefinition widgets.example.com: "},
		{"step", ofWidgets(t, refused), "scenario create, step create: "},
		{"expectation", ofWidgets(t, hopeless, "--env=SECRET=source"), `scenario secret, step create: an expectation does not hold even without a fault: Widget.example.com default/demo: status.size is "small", not "tiny"`},
		{"nothing to do", ofWidgets(t, elsewhere), "the controller wrote nothing in any scenario: "},
		// In the middle, the message says what was the case at the timeout: the objects were changing,
		// or a request had not been answered yet.
		{"never quiet", ofWidgets(t, impatient, "--env=BUG=count"), "scenario life, step create: the controller never comes to rest, even without a fault (…): it keeps sending PATCH widgets default/demo"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			check(t, dir, 2, test.args...).saysNothing(t, test.why)
		})
	}
}

// leavesNothing verifies that an ended check has left no processes or files.
func (c *checking) leavesNothing(t *testing.T, token string) {
	t.Helper()
	eventually(t, "all processes of the check to end", noProcessWith(t, token))
	files, err := os.ReadDir(c.dir + "/tmp")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Errorf("the check leaves the file %s", file.Name())
	}
}

// startTraceable starts a check. All of the check's processes have the token in their
// environment, and all of its files are in one folder.
func startTraceable(t *testing.T, flags ...string) (c *checking, token string) {
	t.Helper()
	return startTraceableIn(t, t.TempDir(), flags...)
}

func startTraceableIn(t *testing.T, dir string, flags ...string) (c *checking, token string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks at /proc")
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	token = "check-" + strconv.Itoa(os.Getpid()) + "-" + filepath.Base(filepath.Dir(dir))
	c = checkIn(t, dir, ofWidgets(t, "life.yaml", append(flags, "--env=TOKEN="+token)...)...)
	c.cmd.Env = append(os.Environ(), "TOKEN="+token, "TMPDIR="+filepath.Join(dir, "tmp"))
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.start(t)
	c.started(t)
	return c, token
}

// killPlane kills the only plane of a check.
func (c *checking) killPlane(t *testing.T) {
	t.Helper()
	labs := slices.DeleteFunc(descendants(t, c.cmd.Process.Pid), func(pid int) bool {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return !bytes.Contains(command, []byte("\x00check\x00lab\x00"))
	})
	if len(labs) != 1 {
		t.Fatalf("the plane is in processes %v", labs)
	}
	if err := syscall.Kill(labs[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// said waits until the check prints a text on standard error.
func (c *checking) said(t *testing.T, text string) {
	t.Helper()
	eventually(t, "the check to print "+text, func(context.Context) error {
		select {
		case <-c.exited:
			t.Fatalf("the check ended before it printed %s: %s", text, c.stderr)
		default:
		}
		if !strings.Contains(c.stderr.String(), text) {
			return errors.New("not yet")
		}
		return nil
	})
}

func TestPlaneThatDiesIsReplacedAndCostsNothing(t *testing.T) {
	t.Parallel()
	c, token := startTraceable(t, "--faults=kill-lost,conflict", "-o=json=report.json")
	c.killPlane(t) // while the scenario is learned
	c.said(t, "injecting faults")
	c.started(t)
	c.killPlane(t)
	c.end(t, 0)
	r := readJSON[checkReport](t, filepath.Join(c.dir, "report.json"))
	for _, k := range r.Tried {
		if k.Clean == 0 || k.Clean != k.Planned {
			t.Errorf("%d faults planned, but only %d are clean", k.Planned, k.Clean)
		}
	}
	c.leavesNothing(t, token)
}

func TestInterruptedCheckSaysNothingAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		signal syscall.Signal
		of     func(pid int) int
	}{
		{"by kill", syscall.SIGTERM, func(pid int) int { return pid }},
		{"at a terminal", syscall.SIGINT, func(pid int) int { return -pid }}, // the whole process group
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, token := startTraceable(t)
			if err := syscall.Kill(test.of(c.cmd.Process.Pid), test.signal); err != nil {
				t.Fatal(err)
			}
			c.saysNothing(t, "interrupted before there was a result; run the command again")
			if !strings.HasPrefix(c.stderr.String(), "seed 7\n") {
				t.Errorf("the seed is not printed first:\n%s", c.stderr)
			}
			c.leavesNothing(t, token)
		})
	}
}

// A second signal follows immediately, as from timeout(1).
func TestInterruptedCheckReportsItsFindingsAndIsResumed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, ".koboshi/findings/DAMAGED.json"), "{")
	flags := []string{"--env=BUG=panic", "--faults=error-500,kill-lost,conflict", "-o=json=report.json", "-o=text"}
	c, token := startTraceableIn(t, dir, flags...)
	c.said(t, "CRASHED: ")
	saved, err := filepath.Glob(filepath.Join(dir, ".koboshi/findings/CRASHED-*.json"))
	if err != nil || len(saved) == 0 {
		t.Errorf("the finding is not saved when it is confirmed: %v", err)
	}
	for range 2 {
		if err := syscall.Kill(-c.cmd.Process.Pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	c.end(t, 1)
	text := c.stdout.String()
	for _, part := range []string{"interrupted after ", "CRASHED", "replay       koboshi check replay ", "repeat the command with --resume", "DAMAGED.json is damaged"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(part), " ")) {
			t.Errorf("the report does not say %q:\n%s", part, text)
		}
	}
	first := readJSON[checkReport](t, filepath.Join(dir, "report.json"))
	c.leavesNothing(t, token)

	other := checkIn(t, dir, ofWidgets(t, "life.yaml", "--resume", "--faults=conflict")...)
	other.start(t)
	other.end(t, 2)
	if !strings.Contains(other.stderr.String(), "was made with other flags (--crds=widgets.yaml") {
		t.Errorf("a check with other flags is resumed: %s", other.stderr)
	}

	c, token = startTraceableIn(t, dir, append(flags, "--resume")...)
	c.end(t, 1)
	r := readJSON[checkReport](t, filepath.Join(dir, "report.json"))
	ran := 0
	for _, k := range r.Tried {
		ran += k.Runs
	}
	if len(r.Findings) < len(first.Findings) || ran != r.planned(t) {
		t.Errorf("%d findings, and before %d; %d runs of %d faults", len(r.Findings), len(first.Findings), ran, r.planned(t))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".koboshi/journal/*")); len(left) > 0 {
		t.Errorf("the complete check leaves the journals %v", left)
	}
	c.leavesNothing(t, token)
}

func TestCrashWhileItsWorkIsLearntIsAFinding(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, dir, 1, ofWidgets(t, "life.yaml", "--env=BUG=crash", "-o=json=report.json")...)
	f := onlyFinding(t, filepath.Join(dir, "report.json"))
	if f.Verdict != "CRASHED" || f.Fault != nil || f.Step != "create" || f.Reproduced != 2 ||
		!strings.Contains(f.Sentence, "panic: a Widget that it cannot handle, in main.run (main.go:") {
		t.Errorf("it found %+v", f)
	}
}

func TestTwoChecksInOneFolderDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []*checking
	for _, kind := range []string{"kill-lost", "kill-after"} {
		c := checkIn(t, dir, ofWidgets(t, "create.yaml", "--faults="+kind, "--env=BUG=first-exists", "-o=json="+kind+".json")...)
		c.start(t)
		all = append(all, c)
	}
	for i, c := range all {
		c.end(t, 1)
		r := readJSON[checkReport](t, filepath.Join(dir, []string{"kill-lost", "kill-after"}[i]+".json"))
		for _, f := range r.Findings {
			if _, err := os.Stat(filepath.Join(dir, f.File)); err != nil {
				t.Errorf("the finding's file: %v", err)
			}
		}
	}
}

func TestKilledCheckLeavesNoProcess(t *testing.T) {
	t.Parallel()
	c, token := startTraceable(t)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.exited
	eventually(t, "all processes of the check to end", func(ctx context.Context) error {
		return noProcessWith(t, token)(ctx)
	})
	if strings.Contains(c.stdout.String(), "clean") {
		t.Error("the killed check reported the controller as clean")
	}
}

package conformance

import (
	"bytes"
	"context"
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
		{"no form", ofWidgets(t, "create.yaml", "-o=pdf"), `unknown format "pdf"; choose from text, json, junit, sarif, html`},
		{"page on a terminal", ofWidgets(t, "create.yaml", "-o=html"), "name a file, such as -o html=report.html"},
		{"two on standard output", ofWidgets(t, "create.yaml", "-o=json", "-o=junit"), "only one format can go to standard output"},
		{"too many workers", ofWidgets(t, "create.yaml", "--workers=65"), "--workers is 65"},
		{"no profile", ofWidgets(t, "create.yaml", "--profile=most"), "most"},
		{"unknown flag", ofWidgets(t, "create.yaml", "--fault=kill-lost"), "unknown flag: --fault"},
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
		{"controller ends", ofWidgets(t, "create.yaml", "--env=BUG=exit"), "the controller exited on its own 6 times, the last time with code 1: checked: the controller exits, because BUG is set to exit"},
		{"definition", []string{"--crds=" + invalid, "--scenario=create.yaml", "--workers=1", "--", checked(t)}, "CustomResourceDefinition widgets.example.com: "},
		{"step", ofWidgets(t, refused), "scenario create, step create: "},
		{"expectation", ofWidgets(t, hopeless, "--env=SECRET=source"), `scenario secret, step create: an expectation does not hold even without a fault: Widget.example.com default/demo: status.size is "small", not "tiny"`},
		{"nothing to do", ofWidgets(t, elsewhere), "the controller wrote nothing in any scenario: "},
		{"never quiet", ofWidgets(t, impatient, "--env=BUG=count"), "scenario life, step create: the controller never comes to rest, even without a fault (objects keep changing): it keeps sending PATCH widgets default/demo"},
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
func startTraceable(t *testing.T) (c *checking, token string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks at /proc")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	token = "check-" + strconv.Itoa(os.Getpid()) + "-" + filepath.Base(filepath.Dir(dir))
	c = checkIn(t, dir, ofWidgets(t, "life.yaml", "--env=TOKEN="+token)...)
	c.cmd.Env = append(os.Environ(), "TOKEN="+token, "TMPDIR="+filepath.Join(dir, "tmp"))
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.start(t)
	c.started(t)
	return c, token
}

func TestCheckSaysNothingWhenItsPlaneDies(t *testing.T) {
	t.Parallel()
	c, token := startTraceable(t)
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
	c.saysNothing(t, "plane 1 exited unexpectedly")
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
			c.leavesNothing(t, token)
		})
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

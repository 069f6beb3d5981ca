package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

func TestARevisionIsCheckedOutAndRemovedAgain(t *testing.T) {
	repository, operator := t.TempDir(), ""
	git(t, "-C", repository, "init", "-q")
	operator = filepath.Join(repository, "operator")
	for _, content := range []string{"old", "new"} {
		if err := os.MkdirAll(operator, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(operator, "version"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, "-C", repository, "add", ".")
		git(t, "-C", repository, "commit", "-q", "-m", content)
		git(t, "-C", repository, "tag", content)
	}
	folder := filepath.Join(t.TempDir(), "old")
	dir, remove, err := worktree(t.Context(), operator, "old", folder)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "version")); err != nil || string(got) != "old" {
		t.Errorf("the folder has the version %q, %v", got, err)
	}
	remove()
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder is still there")
	}
	if list, err := exec.CommandContext(t.Context(), "git", "-C", repository, "worktree", "list").Output(); err != nil || strings.Count(string(list), "\n") != 1 {
		t.Errorf("the repository still has the worktree:\n%s", list)
	}
	if _, _, err := worktree(context.Background(), operator, "v9", folder); err == nil || !strings.Contains(err.Error(), "no revision of git") {
		t.Errorf("an unknown revision: %v", err)
	}
}

func TestOnlyAProgramWithAPathOrWithArgumentsIsACommand(t *testing.T) {
	program := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{program: true, program + " --old": true, "sh -c true": true, "sh": false, "v1.2.0": false, "no-such-program --old": false} {
		if isCommand(text) != want {
			t.Errorf("%s is a command: %t", text, !want)
		}
	}
}

func TestAFlagWithoutEffectOnAnUpgradeIsAnError(t *testing.T) {
	for _, arg := range []string{"--inputs", "--strict", "--paths", "--plan", "--faults=conflict", "--shard=1/2", "--horizon=1s", "--resume"} {
		var f checkFlags
		fs := pflag.NewFlagSet("check", pflag.ContinueOnError)
		f.register(fs)
		if err := fs.Parse([]string{"--upgrade-from=v1", arg}); err != nil {
			t.Fatal(err)
		}
		if err := f.combineUpgrade(fs); err == nil || !strings.Contains(err.Error(), strings.Split(arg, "=")[0]) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestAnUpgradeRunsInTheLargerProfileOfBothVersions(t *testing.T) {
	old := &oldVersion{from: "v1", project: &project.Project{Subject: subject.Subject{Name: "old"}}} // an administrator
	o := check.Options{Profile: subject.ProfileGC, ProfileChosen: true}
	old.upgrade(&o)
	if o.Profile != subject.ProfileWorkloads || o.Upgrade.From != "v1" || o.Upgrade.Old.Name != "old" {
		t.Errorf("%+v", o.Upgrade)
	}
	o = check.Options{Profile: subject.ProfileFull, ProfileChosen: true}
	if old.upgrade(&o); o.Profile != subject.ProfileFull {
		t.Errorf("the profile is %s", o.Profile)
	}
	requests := map[string]any{"rules": []any{map[string]any{
		"apiGroups": []any{"certificates.k8s.io"}, "resources": []any{"certificatesigningrequests"}, "verbs": []any{"create"},
	}}}
	old.project.Subject = subject.Subject{
		Identity: subject.ServiceAccount{Namespace: "old", Name: "old"},
		Roles:    []subject.Role{{Name: "old", Object: unstructured.Unstructured{Object: requests}}},
	}
	o = check.Options{Profile: subject.ProfileWorkloads, ProfileChosen: true}
	if old.upgrade(&o); o.Profile != subject.ProfileFull {
		t.Errorf("the profile is %s, although the old version requests certificates", o.Profile)
	}
	o = check.Options{}
	if (*oldVersion)(nil).upgrade(&o); o.Upgrade != nil {
		t.Error("a check without the flag upgrades")
	}
}

func TestAReplayNamesTheOldVersionBeforeItRunsIt(t *testing.T) {
	lines := strings.Join(oldVersionLines("./old --serve\x1b[2J"), "\n")
	if !strings.Contains(lines, `"./old --serve\x1b[2J"`) || len(oldVersionLines("")) > 0 {
		t.Errorf("%q", lines)
	}
}

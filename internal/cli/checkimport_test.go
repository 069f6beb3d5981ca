package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

const kuttlSuite = `
-- .git/HEAD --
-- shared/widget.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
-- e2e/kuttl-test.yaml --
apiVersion: kuttl.dev/v1beta1
kind: TestSuite
testDirs: [e2e]
-- e2e/create/00-create.yaml --
apiVersion: kuttl.dev/v1beta1
kind: TestStep
apply: [../../shared/widget.yaml]
-- e2e/create/00-assert.yaml --
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
status: {ready: true}
-- e2e/prepare/00-create.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
-- e2e/prepare/01-prepare.yaml --
apiVersion: kuttl.dev/v1beta1
kind: TestStep
commands:
- script: ./a-command-with-a-long-name.sh with several arguments, too many for a line of 80 columns
-- e2e/look/00-assert.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
`

// unpacked writes the files of an archive to a new folder.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	fsys, err := txtar.FS(txtar.Parse([]byte(archive)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, fsys); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestASuiteIsImportedAndWhatIsLeftOutIsListed(t *testing.T) {
	dir := unpacked(t, kuttlSuite)
	t.Chdir(dir)
	code, stdout, stderr := run(t, "check", "import", "e2e", "--output-dir", "scenarios")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{
		"scenarios/create.yaml\n  from e2e/create: 1 step, 1 expectation\n",
		"e2e/look: not imported\n  left out:\n    e2e/look\n      the whole case: ",
		"scenarios/prepare.yaml\n  from e2e/prepare: 1 step, 0 expectations\n  left out:\n    e2e/prepare/01-prepare.yaml:4\n      command \"./a-command",
		"3 cases: 1 with all changes, 1 cut short, 1 not imported\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in the list:\n%s", want, stdout)
		}
	}
	for line := range strings.Lines(stdout) {
		if textwidth.Width(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
	all, from, err := scenario.LoadAll([]string{"scenarios"})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || from["create"] == "" || all[0].Steps[0].Apply[0].Object["kind"] != "Widget" {
		t.Errorf("written: %v", from)
	}
	data, err := os.ReadFile(filepath.Join("scenarios", "prepare.yaml"))
	if err != nil || !strings.Contains(string(data), "# Left out:\n# - e2e/prepare/01-prepare.yaml:4: command ") {
		t.Errorf("the file does not name what is left out (%v):\n%s", err, data)
	}
}

func TestAnImportDoesNotReplaceAnEditedFile(t *testing.T) {
	t.Chdir(unpacked(t, kuttlSuite+"-- scenarios/prepare.yaml --\nedited\n"))
	code, stdout, stderr := run(t, "check", "import", "e2e", "--output-dir", "scenarios")
	if code != exitUsage || !strings.Contains(stderr, "exists, so nothing was written") || stdout != "" {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat("scenarios/create.yaml"); err == nil {
		t.Error("a file was written although another file is in the way")
	}
	if code, _, stderr := run(t, "check", "import", "e2e", "--output-dir", "scenarios", "--force"); code != exitOK {
		t.Errorf("--force: exit code %d: %s", code, stderr)
	}
	if data, _ := os.ReadFile("scenarios/prepare.yaml"); string(data) == "edited\n" {
		t.Error("the file was not replaced")
	}
}

func TestAnImportOfNothingIsAnError(t *testing.T) {
	t.Chdir(unpacked(t, "-- empty/readme.md --\n-- look/a/00-assert.yaml --\nkind: Pod\n"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"empty", "--output-dir", "out"}, "empty: no test case of kuttl or chainsaw was found"},
		{[]string{"look", "--output-dir", "out"}, "look: nothing was imported; the list above gives the reasons"},
		{[]string{"missing", "--output-dir", "out"}, "missing does not exist"},
		{[]string{"empty/readme.md", "--output-dir", "out"}, "empty/readme.md is not a folder"},
		{[]string{"look"}, "name the folder to write to with --output-dir"},
		{[]string{"--output-dir", "out"}, "takes the folder of one suite, but got 0"},
	} {
		code, _, stderr := run(t, append([]string{"check", "import"}, c.args...)...)
		if code != exitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d: %s", c.args, code, stderr)
		}
	}
	if _, err := os.Stat("out"); err == nil {
		t.Error("a folder was created for nothing")
	}
}

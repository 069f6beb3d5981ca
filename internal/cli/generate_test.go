package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/koboshi-dev/koboshi/internal/manifest"
)

// generateProject writes a project that needs no other modules, and makes it the current
// folder. Fingerprints are kept in a new cache folder.
func generateProject(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range txtar.Parse([]byte(`-- go.mod --
module example.com/boats

go 1.26
-- Makefile --
manifests:
	controller-gen rbac:roleName=boats paths=./...
	hack/more.sh
-- controller/controller.go --
// Package controller has rights.
package controller

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get

func run() {}
`)).Files {
		path := filepath.Join(dir, file.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cacheFolder(t)
	t.Chdir(dir)
	return dir
}

// edit replaces a text in a file of the current folder.
func edit(t *testing.T, path, old, replacement string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatalf("%s does not contain %q: %v", path, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, replacement, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

const noteOfBoats = "koboshi: not run: hack/more.sh (Makefile:3)\n"

func TestGenerateNamesTheFilesThatItWrites(t *testing.T) {
	generateProject(t)
	t.Chdir("controller")
	code, out, stderr := run(t, "generate")
	if want := regexp.MustCompile(`^created \.\./config/rbac/role\.yaml\ngenerated 1 file, 0 unchanged, in \d+\.\d s\n$`); code != exitOK || !want.MatchString(out) || stderr != noteOfBoats {
		t.Errorf("exit code %d: %q\n%s", code, out, stderr)
	}
	code, out, _ = run(t, "generate")
	if want := regexp.MustCompile(`^generated 0 files, 1 unchanged, in \d+\.\d s\n$`); code != exitOK || !want.MatchString(out) {
		t.Errorf("exit code %d: %q", code, out)
	}
}

func TestGenerateCheckFailsWithADiffAndTheNextAction(t *testing.T) {
	dir := generateProject(t)
	if code, _, stderr := run(t, "generate"); code != exitOK {
		t.Fatal(stderr)
	}
	edit(t, "controller/controller.go", "verbs=get", "verbs=list")
	code, out, stderr := run(t, "generate", "--check", "--dir", dir)
	if code != exitError || !strings.HasPrefix(out, "--- a/config/rbac/role.yaml\n+++ b/config/rbac/role.yaml\n@@ ") || !strings.Contains(out, "\n-  - get\n+  - list\n") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if want := noteOfBoats + "koboshi: 1 file is out of date; run koboshi generate, and commit the result\n"; stderr != want {
		t.Errorf("%q, want %q", stderr, want)
	}
	if data, err := os.ReadFile("config/rbac/role.yaml"); err != nil || !strings.Contains(string(data), "- get\n") {
		t.Errorf("the file was changed: %v\n%s", err, data)
	}
}

func TestGenerateReportsProblemsWhereTheyAre(t *testing.T) {
	generateProject(t)
	edit(t, "controller/controller.go", "+kubebuilder:rbac:groups=", "+kubebuilder:rbak:groups=")
	t.Chdir("controller")
	code, out, stderr := run(t, "generate")
	want := noteOfBoats + "../controller/controller.go:4:1: unknown marker +kubebuilder:rbak:groups; did you mean +kubebuilder:rbac:groups?\n" +
		"koboshi: nothing was generated, because there is 1 problem; correct it, and run the command again\n"
	if code != exitError || out != "" || stderr != want {
		t.Errorf("exit code %d, %q (-want +got):\n%s", code, out, cmp.Diff(want, stderr))
	}
	if code, _, stderr := run(t, "generate", "--lenient"); code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestGenerateWritesJSONForScripts(t *testing.T) {
	dir := generateProject(t)
	decode := func(wantCode int, args ...string) (got generateOutput) {
		t.Helper()
		code, out, stderr := run(t, append([]string{"generate", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != wantCode {
			t.Fatalf("exit code %d, %v: %s%s", code, err, out, stderr)
		}
		got.Seconds = 0
		return got
	}
	want := generateOutput{
		APIVersion: "generate.koboshi.dev/v1", Dir: dir, Files: []manifest.File{{Path: "config/rbac/role.yaml", Action: manifest.Created}},
		Problems: []manifest.Problem{}, Notes: []string{"not run: hack/more.sh (Makefile:3)"},
	}
	if diff := cmp.Diff(want, decode(exitOK)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	edit(t, "controller/controller.go", "verbs=get", "verbs=list")
	if got := decode(exitError, "--check"); !got.Check || got.Files[0].Action != manifest.Updated || got.Files[0].Diff == "" {
		t.Errorf("%+v", got)
	}
	edit(t, "controller/controller.go", "verbs=list", "verb=list")
	want.Files = []manifest.File{}
	want.Problems = []manifest.Problem{{
		Position: manifest.Position{File: "controller/controller.go", Line: 4}, Column: 1, Marker: "+kubebuilder:rbac",
		Message: "marker +kubebuilder:rbac has no argument verb", Suggestion: "verbs",
	}}
	if diff := cmp.Diff(want, decode(exitError)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGenerateRefusesAWrongCommandLineInOneLine(t *testing.T) {
	generateProject(t)
	for args, want := range map[string]string{
		"-o yaml":                `unknown output format "yaml"; use -o json, or omit -o`,
		"--dir nowhere":          `--dir is "nowhere", which is not a folder; name the folder of your project`,
		"--dir /":                "found no PROJECT or go.mod in / or its parent folders; change to your project's folder, or use --dir",
		"crds paths=./...":       "unknown option crds; did you mean crd?",
		"paths=./...":            "no generator is named; name at least one of applyconfiguration, crd, object, rbac, schemapatch, webhook",
		"rbac:roleName=a path=a": "unknown option path; did you mean paths?",
		"--linient":              "unknown flag: --linient; see koboshi generate --help",
	} {
		code, out, stderr := run(t, append([]string{"generate"}, strings.Fields(args)...)...)
		if code != exitUsage || out != "" || stderr != "koboshi: "+want+"\n" {
			t.Errorf("%s: exit code %d, %q\n%s", args, code, out, stderr)
		}
	}
}

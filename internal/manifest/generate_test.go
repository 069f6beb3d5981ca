package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small is a project that can be generated without dependencies.
const small = `-- go.mod --
module example.com/small

go 1.26
-- Makefile --
manifests:
	controller-gen rbac:roleName=small paths=./...
generate:
	controller-gen object:headerFile=header.txt paths=./api
-- header.txt --
// A licence.
-- api/types.go --
// Package api has types.
package api

// +kubebuilder:object:generate=true
type Box struct {
	// +optional
	Names []string ` + "`json:\"names,omitempty\"`" + `
}
-- controller/controller.go --
// Package controller has rights.
package controller

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get

func run() {}
`

const (
	smallCode = "api/zz_generated.deepcopy.go"
	smallRole = "config/rbac/role.yaml"
)

func TestOnlyFilesThatDifferAreWritten(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	first := generated(t, Options{Dir: dir})
	want := []File{{Path: smallCode, Action: Created}, {Path: smallRole, Action: Created}}
	if diff := cmp.Diff(want, first.Files); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	generatedCode, err := os.ReadFile(filepath.Join(dir, smallCode))
	if err != nil || !strings.Contains(string(generatedCode), "// A licence.") {
		t.Errorf("%v:\n%s", err, generatedCode)
	}

	role, err := os.Stat(filepath.Join(dir, smallRole))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, smallCode), "package api\n")
	if err := os.Chmod(filepath.Join(dir, smallCode), 0o640); err != nil {
		t.Fatal(err)
	}
	second := generated(t, Options{Dir: dir})
	want = []File{{Path: smallCode, Action: Updated}, {Path: smallRole, Action: Unchanged}}
	if diff := cmp.Diff(want, second.Files); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if now, err := os.Stat(filepath.Join(dir, smallRole)); err != nil || !now.ModTime().Equal(role.ModTime()) || !os.SameFile(now, role) {
		t.Errorf("%s was written although it did not change: %v", smallRole, err)
	}
	if info, err := os.Stat(filepath.Join(dir, smallCode)); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the permissions were not kept: %v, %v", info.Mode(), err)
	}
	if again, err := os.ReadFile(filepath.Join(dir, smallCode)); err != nil || string(again) != string(generatedCode) {
		t.Errorf("%v:\n%s", err, again)
	}
}

func TestASymbolicLinkToAGeneratedFileStays(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	write(t, filepath.Join(dir, "real.yaml"), "old\n")
	if err := os.MkdirAll(filepath.Join(dir, "config/rbac"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../real.yaml", filepath.Join(dir, smallRole)); err != nil {
		t.Fatal(err)
	}
	generated(t, Options{Dir: dir})
	info, err := os.Lstat(filepath.Join(dir, smallRole))
	data, readErr := os.ReadFile(filepath.Join(dir, "real.yaml"))
	if err != nil || readErr != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(string(data), "name: small") {
		t.Errorf("%v, %v, %v:\n%s", info.Mode(), err, readErr, data)
	}
}

func TestCheckWritesNothingAndShowsTheDifference(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	generated(t, Options{Dir: dir})
	if result := generated(t, Options{Dir: dir, Check: true}); result.Changed() != 0 {
		t.Errorf("%+v", result.Files)
	}
	if err := os.Remove(filepath.Join(dir, smallCode)); err != nil {
		t.Fatal(err)
	}
	role, err := os.ReadFile(filepath.Join(dir, smallRole))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, smallRole), strings.Replace(string(role), "- get\n", "- list\n", 1))
	before := tree(t, dir)
	result := generated(t, Options{Dir: dir, Check: true})
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("files were written (-before +after):\n%s", diff)
	}
	code := result.Files[0]
	if code.Action != Created || !strings.HasPrefix(code.Diff, "--- /dev/null\n+++ b/"+smallCode+"\n@@ -0,0 +1,") {
		t.Errorf("%s:\n%s", code.Action, code.Diff)
	}
	want := "--- a/config/rbac/role.yaml\n+++ b/config/rbac/role.yaml\n@@ -9,4 +9,4 @@\n   resources:\n   - deployments\n   verbs:\n-  - list\n+  - get\n"
	if diff := cmp.Diff(want, result.Files[1].Diff); diff != "" || result.Files[1].Action != Updated {
		t.Errorf("%s (-want +got):\n%s", result.Files[1].Action, diff)
	}
}

func TestAProjectIsFoundFromItsSubfolders(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	result := generated(t, Options{Dir: filepath.Join(dir, "api")})
	if result.Dir != dir || len(result.Files) != 2 || result.Files[1].Path != smallRole {
		t.Errorf("%+v", result)
	}
	var none *NoProjectError
	if _, err := Generate(t.Context(), Options{Dir: t.TempDir()}); !errors.As(err, &none) {
		t.Errorf("%v, want a NoProjectError", err)
	}
}

func TestArgumentsReplaceWhatTheMakefileSays(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	result := generated(t, Options{Dir: filepath.Join(dir, "controller"), Args: []string{"rbac:roleName=other", "paths=.", "output:stdout"}})
	if !strings.Contains(string(result.Stdout), "name: other") || len(result.Files) > 0 {
		t.Errorf("%+v\n%s", result.Files, result.Stdout)
	}
	result = generated(t, Options{Dir: dir, Args: []string{"object", "paths={./api,./controller}", "output:dir=out"}})
	if diff := cmp.Diff([]File{{Path: "out/zz_generated.deepcopy.go", Action: Created}}, result.Files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for arg, want := range map[string]string{
		"crdd":                 "unknown option crdd; did you mean crd?",
		"paths=./nowhere":      "paths=./nowhere: there is no such folder; correct the path",
		"object:header=x":      "unknown argument",
		"--verbose":            "koboshi does not support controller-gen's flag --verbose",
		"rbac:roleName=x":      "named twice",
		"output:webhook:dir=a": "there is an output option for webhook, which is not run",
	} {
		_, err := Generate(t.Context(), Options{Dir: dir, Args: []string{"rbac:roleName=a", arg}})
		if !IsCallError(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

func TestNothingIsWrittenIfAnythingFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path, old, new string
		want           string // the beginning of a problem
	}{
		"Go that cannot be parsed": {"api/types.go", "type Box struct {", "type Box strukt {", "api/types.go:5:"},
		"an import that does not exist": {
			"controller/controller.go", "package controller", "package controller\n\nimport _ \"example.com/small/nowhere\"", "controller/controller.go:4:8: ",
		},
		"a type that cannot be copied": {
			"api/types.go", "Names []string", "Names [2]*string", "api/types.go:7:2: invalid field type: [2]*string",
		},
		"a misspelled marker": {
			"api/types.go", "+kubebuilder:object:generate", "+kubebuilder:object:generat",
			"api/types.go:4:1: unknown marker +kubebuilder:object:generat; did you mean +kubebuilder:object:generate?",
		},
		"a wrong argument": {
			"controller/controller.go", "verbs=get", "verb=get", "controller/controller.go:4:1: marker +kubebuilder:rbac has no argument verb; did you mean verbs?",
		},
		"an unknown option":              {"Makefile", "rbac:", "rback:", "Makefile:2: unknown option rback; did you mean rbac?"},
		"an unknown generator":           {"Makefile", "object:headerFile=header.txt", "objekt", "Makefile:4: unknown option objekt; did you mean object?"},
		"a folder that is missing":       {"Makefile", "paths=./api", "paths=./apis/...", "Makefile:4: paths=./apis/...: there is no such folder; correct the path"},
		"a path of a file":               {"Makefile", "paths=./api", "paths=./api/types.go", "Makefile:4: paths=./api/types.go is a file; name its folder"},
		"a header that is missing":       {"Makefile", "header.txt", "no.txt", "Makefile:4: object: open "},
		"a go.mod that cannot be parsed": {"go.mod", "go 1.26", "gone 1.26", "go.mod:3: unknown directive: gone"},
		"a command in an argument": {
			"Makefile", "roleName=small", "roleName=$(shell cat name)", "Makefile:2: koboshi does not run $(shell cat name); ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, small)
			path := filepath.Join(dir, test.path)
			data, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(data), test.old) {
				t.Fatalf("%v: %s does not contain %q", err, test.path, test.old)
			}
			write(t, path, strings.Replace(string(data), test.old, test.new, 1))
			before := tree(t, dir)
			result, err := Generate(t.Context(), Options{Dir: dir, Cache: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Problems) == 0 || !strings.HasPrefix(fmt.Sprint(result.Problems[0]), test.want) {
				t.Errorf("%v, want %q", result.Problems, test.want)
			}
			for _, p := range result.Problems {
				if strings.Contains(p.String(), "\n") {
					t.Errorf("%q has more than one line", p)
				}
			}
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Errorf("files were written (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	// A folder stands where the second file must go.
	if err := os.MkdirAll(filepath.Join(dir, smallRole), 0o755); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	if _, err := Generate(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), smallRole) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("files were written (-before +after):\n%s", diff)
	}
}

func TestLenientIgnoresWrongMarkers(t *testing.T) {
	t.Parallel()
	dir := project(t, strings.Replace(small, "+optional", "+kubebuilder:validation:Minimun=1", 1))
	result, err := Generate(t.Context(), Options{Dir: dir})
	if err != nil || len(result.Problems) != 1 {
		t.Fatalf("%v, %v", result.Problems, err)
	}
	if result := generated(t, Options{Dir: dir, Lenient: true}); result.Changed() != 2 {
		t.Errorf("%+v", result.Files)
	}
}

func TestPackagesOfSeveralModulesAreGenerated(t *testing.T) {
	t.Parallel()
	dir := project(t, small+`-- nested/go.mod --
module example.com/small/nested

go 1.26
-- nested/types.go --
package nested

// +kubebuilder:object:generate=true
type Other struct{ Names map[string]string }
`)
	write(t, filepath.Join(dir, "Makefile"), "generate:\n\tcd nested && controller-gen object paths=./...\n\tcontroller-gen object paths=./...\n")
	result := generated(t, Options{Dir: dir})
	want := []File{{Path: smallCode, Action: Created}, {Path: "nested/zz_generated.deepcopy.go", Action: Created}}
	if diff := cmp.Diff(want, result.Files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package manifest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compareTrees reports the files that differ.
func compareTrees(t *testing.T, want, got map[string]string) {
	t.Helper()
	for path := range want {
		if _, ok := got[path]; !ok {
			t.Errorf("%s is not generated", path)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is generated, but not by controller-gen", path)
		} else if diff := cmp.Diff(strings.Split(want[path], "\n"), strings.Split(got[path], "\n")); diff != "" {
			t.Errorf("%s (-controller-gen +koboshi):\n%s", path, diff)
		}
	}
}

func TestTheOutputIsWhatControllerGenWritesForTheShapesOfRealProjects(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	theirs, ours := extract(t, archive(t, "shapes.txtar")), extract(t, archive(t, "shapes.txtar"))
	for _, dir := range []string{theirs, ours} {
		useModules(t, dir, "example.com/shapes")
	}
	before := len(tree(t, theirs))
	cmd := exec.CommandContext(t.Context(), "make", "manifests", "generate", "CONTROLLER_GEN="+controllerGen(t))
	cmd.Dir = theirs
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	result := generated(t, Options{Dir: ours, Lenient: true})
	want := tree(t, theirs)
	compareTrees(t, want, tree(t, ours))
	if generated := len(want) - before; generated < 35 || len(result.Files) < generated {
		t.Errorf("%d files were generated, and koboshi reports %d", generated, len(result.Files))
	}
}

func TestTheOutputIsWhatControllerGenWritesForTheOperators(t *testing.T) {
	t.Parallel()
	program := controllerGen(t)
	for _, name := range []string{"storagebucket", "markdownview"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs, ours := copyOperator(t, name), copyOperator(t, name)
			calls, _, err := projectCalls(theirs)
			if err != nil || len(calls) < 3 {
				t.Fatalf("%d calls, %v", len(calls), err)
			}
			for _, call := range calls {
				cmd := exec.CommandContext(t.Context(), program, call.Args...)
				cmd.Dir = call.Dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", cmd, err, out)
				}
			}
			result := generated(t, Options{Dir: ours})
			if result.Changed() != len(result.Files) || len(result.Files) < 4 {
				t.Errorf("%d files, of which %d changed", len(result.Files), result.Changed())
			}
			compareTrees(t, tree(t, theirs), tree(t, ours))
		})
	}
}

// generatedFile matches the generated files of the operators.
var generatedFile = regexp.MustCompile(`zz_generated|/config/crd/bases/|/config/rbac/role\.yaml|/config/webhook/manifests\.yaml`)

// copyOperator copies the code of an operator without its generated files.
func copyOperator(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	operator := filepath.Join(repository, "operators", name)
	for _, part := range []string{"Makefile", "PROJECT", "go.mod", "go.sum", "tools", "api", "cmd", "internal", "config"} {
		if err := copyTree(filepath.Join(operator, part), filepath.Join(dir, part)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func copyTree(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil { // a file
		data, err := os.ReadFile(from)
		if err != nil || generatedFile.MatchString(filepath.ToSlash(from)) {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	}
	for _, entry := range entries {
		if err := copyTree(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func TestTheVersionsOfTheGeneratorsAreThoseOfGoMod(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for module, ours := range map[string]string{toolsModule: ToolsVersion, clientsModule: ClientsVersion} {
		if version := requiredVersion(data, module); version != ours {
			t.Errorf("go.mod requires %s %q, and koboshi says that it uses %s", module, version, ours)
		}
	}
}

func TestAProjectInTheLayoutOfKubebuilderIsUpToDate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(repository, "conformance", "envtest", "testdata", "project")
	result := generated(t, Options{Dir: dir, Check: true})
	if result.Changed() > 0 || len(result.Files) != 4 {
		t.Errorf("the files are %+v", result.Files)
	}
}

package manifest

import (
	"embed"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// testdata is embedded, because the generator of apply configurations changes the current
// folder while other tests run.
//
//go:embed testdata
var testdata embed.FS

// repository is the root of the repository, found before any test changes the current folder.
var repository = func() string {
	here, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return filepath.Join(here, "..", "..")
}()

// archive reads a txtar file of testdata.
func archive(t *testing.T, name string) *txtar.Archive {
	t.Helper()
	data, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return txtar.Parse(data)
}

// extract writes the files of an archive into a new folder.
func extract(t *testing.T, a *txtar.Archive) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range a.Files {
		write(t, filepath.Join(dir, file.Name), string(file.Data))
	}
	return dir
}

// project writes files, which are given as a txtar archive, into a new folder.
func project(t *testing.T, text string) string {
	t.Helper()
	return extract(t, txtar.Parse([]byte(text)))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// useModules gives the project the dependencies of this repository, which are in the module
// cache.
func useModules(t *testing.T, dir, module string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "\nmodule ")
	if first, after, ok := strings.Cut(string(data), "\n"); ok && strings.HasPrefix(first, "module ") {
		rest = "\n" + after
	}
	_, rest, _ = strings.Cut(rest, "\n")
	write(t, filepath.Join(dir, "go.mod"), "module "+module+"\n"+rest)
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), string(sums))
}

// tree returns the contents of all files below a folder, except go.sum.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "go.sum" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// generated calls Generate and fails the test if there is an error or a problem.
func generated(t *testing.T, o Options) *Result {
	t.Helper()
	result, err := Generate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range result.Problems {
		t.Error(p)
	}
	if t.Failed() {
		t.FailNow()
	}
	return result
}

// controllerGen returns the path of the controller-gen that the operators pin.
func controllerGen(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join("operators", "storagebucket", "tools", "go.mod"), "-n", "controller-gen")
	cmd.Dir = repository
	// controller-gen is built with the same settings as in the operators' make verify, so that it
	// is compiled only once.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	return strings.TrimSpace(string(out))
}

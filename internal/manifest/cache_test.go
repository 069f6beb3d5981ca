package manifest

import (
	"os"
	"path/filepath"
	"testing"
)

// withReplace is a project that uses a module in another folder.
const withReplace = small + `-- local/go.mod --
module example.com/local

go 1.26
-- local/local.go --
package local

type Name string
-- api/local.go --
package api

import "example.com/local"

// +kubebuilder:object:generate=true
type Named struct{ Name local.Name }
`

// hits reports whether the fingerprint of the last run is still valid.
func hits(t *testing.T, o Options) bool {
	t.Helper()
	g := &generation{options: o, store: newStore(), result: &Result{}}
	if err := g.plan(); err != nil || len(g.result.Problems) > 0 {
		t.Fatal(err, g.result.Problems)
	}
	_, ok := g.newCache().lookup()
	return ok
}

func TestTheFingerprintCoversEveryInput(t *testing.T) {
	// The test cannot run in parallel, because it sets environment variables.
	dir := project(t, withReplace)
	write(t, filepath.Join(dir, "go.mod"), "module example.com/small\n\ngo 1.26\n\nrequire example.com/local v0.0.0\n\nreplace example.com/local => ./local\n")
	o := Options{Dir: dir, Cache: t.TempDir()}
	if result := generated(t, o); result.Cached || result.Changed() == 0 {
		t.Fatalf("%+v", result)
	}
	if result := generated(t, o); !result.Cached || len(result.Files) != 2 || result.Changed() != 0 {
		t.Fatalf("the second run does not use the fingerprint: %+v", result)
	}

	for name, path := range map[string]string{
		"a Go file":                   "api/types.go",
		"a Go file of a replacement":  "local/local.go",
		"a file that only has rights": "controller/controller.go",
		"go.mod":                      "go.mod",
		"go.mod of a replacement":     "local/go.mod",
		"the header":                  "header.txt",
		"generated code":              smallCode,
		"a generated manifest":        smallRole,
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			// The size and the time of the file stay the same.
			edited := append([]byte(nil), data...)
			edited[len(edited)-1] = ' '
			write(t, filepath.Join(dir, path), string(edited))
			if err := os.Chtimes(filepath.Join(dir, path), info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			if hits(t, o) {
				t.Errorf("an edit of %s is not noticed", path)
			}
			if err := os.Remove(filepath.Join(dir, path)); err != nil {
				t.Fatal(err)
			}
			if path != "go.mod" && hits(t, o) {
				t.Errorf("the removal of %s is not noticed", path)
			}
			write(t, filepath.Join(dir, path), string(data))
			if !hits(t, o) {
				t.Errorf("%s is as before, but the fingerprint is not", path)
			}
		})
	}
	for _, path := range []string{"api/more.go", "more/more.go", "testdata/more.go", "go.sum", "go.work", "vendor/modules.txt", "local/more.go"} {
		t.Run("a new "+path, func(t *testing.T) {
			write(t, filepath.Join(dir, path), "package more\n")
			if hits(t, o) {
				t.Errorf("%s is not noticed", path)
			}
			if err := os.Remove(filepath.Join(dir, path)); err != nil {
				t.Fatal(err)
			}
			if !hits(t, o) {
				t.Errorf("%s was removed, but the fingerprint is not as before", path)
			}
		})
	}
	for name, value := range map[string]string{"GOFLAGS": "-mod=mod", "GOOS": "plan9", "CGO_ENABLED": "7", "GOTOOLCHAIN": "local+path"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if hits(t, o) {
				t.Errorf("%s=%s is not noticed", name, value)
			}
		})
	}
	t.Run("options", func(t *testing.T) {
		lenient := o
		lenient.Lenient = true
		if hits(t, lenient) {
			t.Error("lenient is not noticed")
		}
		makefile, err := os.ReadFile(filepath.Join(dir, "Makefile"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "Makefile"), "generate:\n\tcontroller-gen object paths=./api\n")
		if hits(t, o) {
			t.Error("other options are not noticed")
		}
		write(t, filepath.Join(dir, "Makefile"), string(makefile))
	})
	if !hits(t, o) {
		t.Error("everything is as before, but the fingerprint is not")
	}
}

func TestADamagedFingerprintOnlyCostsTime(t *testing.T) {
	t.Parallel()
	o := Options{Dir: project(t, small), Cache: t.TempDir()}
	generated(t, o)
	files, err := filepath.Glob(filepath.Join(o.Cache, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	write(t, files[0], "{")
	if result := generated(t, o); result.Cached || result.Changed() != 0 {
		t.Errorf("%+v", result)
	}
	if !hits(t, o) {
		t.Error("the fingerprint was not repaired")
	}
}

func TestWhatGoesToTheStandardOutputIsGeneratedEveryTime(t *testing.T) {
	t.Parallel()
	o := Options{Dir: project(t, small), Cache: t.TempDir(), Args: []string{"rbac:roleName=a", "paths=./controller", "output:stdout"}}
	for range 2 {
		if result := generated(t, o); result.Cached || len(result.Stdout) == 0 {
			t.Errorf("%+v", result)
		}
	}
}

func TestACheckThatFindsADifferenceKeepsNoFingerprint(t *testing.T) {
	t.Parallel()
	o := Options{Dir: project(t, small), Cache: t.TempDir(), Check: true}
	for range 2 {
		if result := generated(t, o); result.Cached || result.Changed() != 2 {
			t.Errorf("%+v", result)
		}
	}
}

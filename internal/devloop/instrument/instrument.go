// Package instrument builds a manager with a controller-runtime that reports why each reconcile
// happened, and receives the reports.
//
//	controller-runtime of the project ──Prepare──▶ copy with report ──go build -modfile──▶ manager
//	trace.Log ◀──Listen── loopback ◀────────────────────────────────────────────────────────┘
//
// Neither the project's files nor the module cache is changed. In a project with a vendor folder,
// the changed files are passed with -overlay instead of -modfile.
package instrument

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

const module = "sigs.k8s.io/controller-runtime"

// found is the controller-runtime that a project uses.
type found struct {
	dir, version string
	vendored     bool
}

// Prepare writes an instrumented copy of the controller-runtime that a main package in the module in
// dir uses to the folder to, and returns the flags of go build that use the copy. The flags remain
// valid until go.mod, or a controller-runtime in a folder of the project, changes.
func Prepare(ctx context.Context, dir, main, to string) (flags []string, err error) {
	where, err := find(ctx, dir, main)
	if err != nil {
		return nil, err
	}
	changed, err := rewritten(where.dir)
	if err != nil {
		return nil, fmt.Errorf("controller-runtime %s cannot be instrumented: %w; omit --instrument", where.version, err)
	}
	if err := os.RemoveAll(to); err != nil {
		return nil, err
	}
	if where.vendored {
		return overlay(where.dir, to, changed)
	}
	return replaced(dir, where.dir, to, changed)
}

// find returns the controller-runtime that a package uses. The module may require it only for its
// tests.
func find(ctx context.Context, dir, main string) (found, error) {
	const inside = "/pkg/internal/controller"
	const format = `{{if eq .ImportPath "` + module + inside + `"}}{{.Dir}}{{"\n"}}{{with .Module}}{{.Version}}{{end}}{{end}}`
	list := exec.CommandContext(ctx, "go", "list", "-e", "-deps", "-f", format, main)
	list.Dir, list.Env = dir, os.Environ() // the build has the same environment, and so the same paths
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return found{}, fmt.Errorf("finding controller-runtime: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	folder, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	root, ok := strings.CutSuffix(filepath.ToSlash(folder), inside)
	if !ok {
		// An error in the code, or a missing module, also hides packages.
		all := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{.Name}}", main)
		all.Dir, all.Env = dir, os.Environ()
		if out, err := all.CombinedOutput(); err != nil {
			return found{}, fmt.Errorf("finding controller-runtime: %w: %s", err, bytes.TrimSpace(out))
		}
		return found{}, errors.New("the manager does not use controller-runtime, so there is nothing to instrument; omit --instrument")
	}
	return found{filepath.FromSlash(root), version, strings.HasSuffix(root, "/vendor/"+module)}, nil
}

// replaced copies controller-runtime, and writes a go.mod that uses the copy.
func replaced(dir, from, to string, changed map[string][]byte) ([]string, error) {
	work := exec.Command("go", "env", "GOWORK")
	work.Dir = dir
	if out, err := work.Output(); err == nil && len(bytes.TrimSpace(out)) > 0 && string(bytes.TrimSpace(out)) != "off" {
		return nil, fmt.Errorf("%s makes the project a part of a workspace, in which another go.mod cannot be used; set GOWORK=off, or omit --instrument", bytes.TrimSpace(out))
	}
	if strings.Contains(os.Getenv("GOFLAGS"), "-modfile=") {
		return nil, errors.New("GOFLAGS already names another go.mod with -modfile; unset it, or omit --instrument")
	}
	from, err := filepath.EvalSymlinks(from) // a walk does not follow a link at its root
	if err != nil {
		return nil, err
	}
	source := filepath.Join(to, "controller-runtime")
	if err := copySources(from, source); err != nil {
		return nil, err
	}
	if err := write(source, changed); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	// A replacement of one version would take precedence over one of all versions.
	for _, r := range mod.Replace {
		if r.Old.Path == module {
			if err := mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return nil, err
			}
		}
	}
	if err := mod.AddReplace(module, "", source, ""); err != nil {
		return nil, err
	}
	mod.Cleanup()
	if data, err = mod.Format(); err != nil {
		return nil, err
	}
	files := map[string][]byte{"go.mod": data}
	// The go command reads the checksums from a file beside the given go.mod.
	if sum, err := os.ReadFile(filepath.Join(dir, "go.sum")); err == nil {
		files["go.sum"] = sum
	}
	return []string{"-modfile=" + filepath.Join(to, "go.mod")}, write(to, files)
}

// overlay writes the changed files, and a file that tells the compiler what they replace.
func overlay(from, to string, changed map[string][]byte) ([]string, error) {
	var instead struct{ Replace map[string]string }
	instead.Replace = map[string]string{}
	for name := range changed {
		instead.Replace[filepath.Join(from, name)] = filepath.Join(to, name)
	}
	data, err := json.Marshal(instead)
	if err != nil {
		return nil, err
	}
	const file = "overlay.json"
	if err := write(to, changed); err != nil {
		return nil, err
	}
	return []string{"-overlay=" + filepath.Join(to, file)}, write(to, map[string][]byte{file: data})
}

// copySources copies what a build of the module needs. The module cache is read-only; the copy is
// not.
func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); path != from && (strings.HasPrefix(base, ".") || base == "testdata" || base == "examples" || base == "vendor") {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		if !d.Type().IsRegular() || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
}

// write writes files into a folder.
func write(folder string, files map[string][]byte) error {
	for name, data := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

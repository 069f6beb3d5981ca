// Package suite runs the test suites of controller-runtime with the control plane
// programs of a folder, and reads the outcome of every spec.
package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	module = "sigs.k8s.io/controller-runtime"
	// The dependencies of a test binary show its kind: it starts a control plane only if it
	// links startsControlPlane, and has specs only if it links hasSpecs.
	startsControlPlane = module + "/pkg/internal/testing/controlplane"
	hasSpecs           = "github.com/onsi/ginkgo/v2"
)

// Short lists the suites that run with -short, because CI has no time for all of them. They
// cover the contract itself and each kind of client.
var Short = []string{"pkg/client", "pkg/client/apiutil", "pkg/controller", "pkg/envtest", "pkg/internal/testing/controlplane", "pkg/webhook"}

// A Source is a writable copy of controller-runtime. A copy is needed because the module
// cache is read-only. Within their own module, the suites are built with the dependencies
// that upstream uses to test them.
type Source struct {
	Version string
	dir     string
}

// A Suite consists of the tests of one package.
type Suite struct {
	Name string // path within controller-runtime, such as pkg/client

	dir, binary string
	ginkgo      bool
}

// Checkout copies into dir the release of controller-runtime that the module in
// the working folder requires.
func Checkout(ctx context.Context, dir string) (*Source, error) {
	out, err := goCommand(ctx, ".", "mod", "download", "-json", module)
	if err != nil {
		return nil, err
	}
	var m struct{ Dir, Version string }
	if err := json.Unmarshal(out, &m); err != nil {
		return nil, fmt.Errorf("finding the folder of the module %s: %w", module, err)
	}
	if err := os.CopyFS(dir, os.DirFS(m.Dir)); err != nil {
		return nil, fmt.Errorf("copying %s from the module cache: %w", module, err)
	}
	return &Source{Version: m.Version, dir: dir}, executable(dir)
}

// executable restores the executable bit of scripts, because some suites run scripts
// instead of a server and a module's archive does not keep that bit.
func executable(dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".sh" || !entry.Type().IsRegular() {
			return err
		}
		return os.Chmod(name, 0o755)
	})
}

// Suites returns the packages whose tests start a control plane, sorted by name. It
// returns an error if a requested name is not among them.
func (s *Source) Suites(ctx context.Context, names []string) ([]*Suite, error) {
	out, err := goCommand(ctx, s.dir, "list", "-test", "-json=ImportPath,Deps", "./pkg/...")
	if err != nil {
		return nil, err
	}
	var all []*Suite
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("reading the list of suites: %w", err)
		}
		importPath, test := strings.CutSuffix(p.ImportPath, ".test")
		if name := strings.TrimPrefix(importPath, module+"/"); test && links(p.Deps, startsControlPlane) {
			all = append(all, &Suite{
				Name:   name,
				dir:    filepath.Join(s.dir, filepath.FromSlash(name)),
				binary: filepath.Join(s.dir, "bin", strings.ReplaceAll(name, "/", "_")+".test"),
				ginkgo: links(p.Deps, hasSpecs),
			})
		}
	}
	return choose(all, names)
}

// links reports whether a package is among the dependencies. A package that was
// compiled for a test is listed as "path [path.test]".
func links(deps []string, pkg string) bool {
	return slices.ContainsFunc(deps, func(d string) bool { return d == pkg || strings.HasPrefix(d, pkg+" ") })
}

// choose keeps the suites with these names, or all if there are none.
func choose(all []*Suite, names []string) ([]*Suite, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []*Suite
	for _, name := range names {
		name = path.Clean(strings.TrimSpace(name))
		i := slices.IndexFunc(all, func(s *Suite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no suite %q that starts a control plane; choose from %s", name, strings.Join(Names(all), ","))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// Names returns the names of the suites in the same order.
func Names(suites []*Suite) (names []string) {
	for _, s := range suites {
		names = append(names, s.Name)
	}
	return names
}

// Build compiles the suite's test binary. Both sides run the same binary, so no
// difference can come from the build.
func (s *Suite) Build(ctx context.Context) error {
	_, err := goCommand(ctx, s.dir, "test", "-c", "-o", s.binary, ".")
	return err
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// Without cgo, the build reuses the packages that make build has compiled. The user's
	// go.work must not change the dependencies.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

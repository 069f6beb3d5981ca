package manifest

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// A target is an element of paths=.
type target struct {
	dir string
	// deep means that the path ends with "..."
	deep bool
}

// contains reports whether the path includes a package, by the rules of the go command.
func (t target) contains(dir string) bool {
	if dir == t.dir {
		return true
	}
	rest, ok := strings.CutPrefix(dir, strings.TrimSuffix(t.dir, "/")+"/")
	if !ok || !t.deep {
		return false
	}
	for element := range strings.SplitSeq(filepath.ToSlash(rest), "/") {
		if element[0] == '_' || element[0] == '.' || element == "testdata" || element == "vendor" {
			return false
		}
	}
	return true
}

// pattern returns the path for package packages. Because of the prefix, controller-tools passes the
// pattern on instead of running the go command once for each path.
func (t target) pattern() string {
	if t.deep {
		return "pattern=" + filepath.Join(t.dir, "...")
	}
	return "pattern=" + t.dir
}

// load is one load of packages, which several runs share.
type load struct {
	dir  string
	env  []string
	tags string
	// patterns lists the package patterns for the go command.
	patterns []string

	fset  *token.FileSet
	roots []*loader.Package
	// checked is the value that typesNeeded returned for the last run.
	checked string
}

// loadPackages loads the packages of all runs with as few calls of the go command as possible,
// because these calls need most of the time. It returns the load and the root packages of each
// run.
func loadPackages(ctx context.Context, runs []*run) (loads []*load, of []*load, roots [][]*loader.Package, err error) {
	of, targets := make([]*load, len(runs)), make([][]target, len(runs))
	for i, r := range runs {
		candidate, list, err := planLoad(r)
		if err != nil {
			return nil, nil, nil, atCall(r.call, err)
		}
		targets[i] = list
		at := slices.IndexFunc(loads, candidate.canJoin)
		if at < 0 {
			loads = append(loads, candidate)
			at = len(loads) - 1
		}
		of[i] = loads[at]
		for _, pattern := range candidate.patterns {
			if !slices.Contains(of[i].patterns, pattern) {
				of[i].patterns = append(of[i].patterns, pattern)
			}
		}
	}
	for _, l := range loads {
		if err := l.run(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	roots = make([][]*loader.Package, len(runs))
	for i := range runs {
		roots[i] = selectRoots(of[i].roots, targets[i])
	}
	return loads, of, roots, nil
}

// planLoad returns the load that a run needs. A run whose paths are in several modules, or are
// not folders, needs a load of its own, and has no targets; its roots are all packages of that
// load.
func planLoad(r *run) (*load, []target, error) {
	targets, plain, err := r.targets()
	if err != nil {
		return nil, nil, err
	}
	l := &load{dir: r.call.Dir, env: r.call.Env, tags: r.tags, patterns: r.paths}
	if !plain {
		return l, nil, nil
	}
	module, single, err := moduleOf(targets)
	if err != nil || !single {
		return l, nil, err
	}
	l.dir, l.patterns = module, nil
	for _, t := range targets {
		l.patterns = append(l.patterns, t.pattern())
	}
	return l, targets, nil
}

// canJoin reports whether both loads can be joined into one.
func (l *load) canJoin(other *load) bool {
	if l.dir != other.dir || l.tags != other.tags || !slices.Equal(l.env, other.env) {
		return false
	}
	return l.shared() && other.shared() || slices.Equal(l.patterns, other.patterns)
}

// shared reports whether the load can have more patterns.
func (l *load) shared() bool {
	return len(l.patterns) > 0 && !slices.ContainsFunc(l.patterns, func(p string) bool { return !strings.HasPrefix(p, "pattern=") })
}

// targets returns the folders in paths=, and whether all paths are folders.
func (r *run) targets() (targets []target, plain bool, err error) {
	paths := r.paths
	if len(paths) == 0 {
		paths = []string{"."}
	}
	plain = true
	for _, path := range paths {
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, ".") {
			plain = false // the name of a package
			continue
		}
		t := target{dir: inDir(r.call.Dir, path)}
		if filepath.Base(path) == "..." {
			t = target{dir: filepath.Dir(t.dir), deep: true}
		}
		if strings.Contains(t.dir, "...") {
			plain = false
			continue
		}
		switch info, err := os.Stat(t.dir); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, false, fmt.Errorf("paths=%s: there is no such folder; correct the path", path)
		case err != nil:
			return nil, false, fmt.Errorf("paths=%s: %w", path, err)
		case !info.IsDir():
			return nil, false, fmt.Errorf("paths=%s is a file; name its folder, because the generators need the whole package", path)
		}
		targets = append(targets, t)
	}
	return targets, plain, nil
}

// moduleOf returns the folder of the module that contains all targets, and whether there is
// only one. As in controller-gen, a path with "..." includes the modules below it.
func moduleOf(targets []target) (module string, single bool, err error) {
	for _, t := range targets {
		root, err := moduleRoot(t.dir)
		if err != nil {
			return "", false, err
		}
		if module == "" {
			module = root
		}
		if root != module || t.deep && hasNestedModule(t.dir, root) {
			return "", false, nil
		}
	}
	return module, true, nil
}

// moduleRoot returns the nearest folder that contains a go.mod.
func moduleRoot(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(filepath.Join(at, "go.mod")); err == nil && info.Mode().IsRegular() {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("found no go.mod in %s or its parent folders; run go mod init", dir)
		}
	}
}

func hasNestedModule(dir, root string) (found bool) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "go.mod" && !entry.IsDir() && filepath.Dir(path) != root {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// run loads the packages.
func (l *load) run(ctx context.Context) error {
	l.fset = token.NewFileSet()
	roots, err := loader.LoadRootsWithConfig(&packages.Config{
		Context: ctx, Dir: l.dir, Fset: l.fset,
		Mode: packages.NeedModule, Env: append(os.Environ(), l.env...), BuildFlags: []string{"-tags=" + l.tags},
	}, l.patterns...)
	if err != nil {
		return loadError(err)
	}
	l.roots = roots
	return nil
}

// inModuleFile matches a message of the go command about a go.mod or go.work.
var inModuleFile = regexp.MustCompile(`^(\S*go\.(?:mod|work)):(\d+): (.*)$`)

// loadError shortens an error of package packages to the message of the go
// command.
func loadError(err error) error {
	text := oneLine(err.Error())
	if _, message, ok := strings.Cut(text, "stderr: "); ok {
		text = strings.TrimPrefix(message, "go: ")
		if _, message, ok := strings.Cut(text, "errors parsing go.mod: "); ok {
			text = message
		}
	}
	if match := inModuleFile.FindStringSubmatch(text); match != nil {
		line, _ := strconv.Atoi(match[2])
		return atCall(Call{At: Position{File: match[1], Line: line}}, errors.New(match[3]))
	}
	return fmt.Errorf("loading the packages: %s", text)
}

// selectRoots returns the packages that belong to the targets, in the order of the targets.
func selectRoots(all []*loader.Package, targets []target) (roots []*loader.Package) {
	if targets == nil {
		return all
	}
	for _, t := range targets {
		for _, pkg := range all {
			if t.contains(pkg.Dir) && !slices.Contains(roots, pkg) {
				roots = append(roots, pkg)
			}
		}
	}
	return roots
}

// copying lists the markers that make the generator object write something.
var copying = func() (names []string) {
	registry := &markers.Registry{}
	if err := (deepcopy.Generator{}).RegisterMarkers(registry); err != nil {
		panic(err) // the markers are constants
	}
	for _, definition := range registry.AllDefinitions() {
		names = append(names, definition.Name)
	}
	return names
}()

// upToLastCopied returns the root packages up to the last one for which the generator object writes
// something. That generator type-checks all packages that a root's types refer to. For a package
// with controllers, these are most of controller-runtime and client-go. Earlier roots without a
// marker stay, because the type checker keeps what it has learned from them.
func upToLastCopied(collector *markers.Collector, roots []*loader.Package) []*loader.Package {
	for i, root := range slices.Backward(roots) {
		found, err := collector.MarkersInPackage(root)
		if err != nil {
			return roots[:i+1]
		}
		for _, values := range found {
			if slices.ContainsFunc(copying, func(name string) bool { return len(values[name]) > 0 }) {
				return roots[:i+1]
			}
		}
	}
	return nil
}

// prepareTypes removes the results of the type checker that a run must not use. Generators let the
// type checker skip the types that they do not need, but the next run may need these types.
func (l *load) prepareTypes(r *run) {
	needs := r.typesNeeded()
	if needs == "" || needs == l.checked {
		return
	}
	if l.checked != "" {
		for _, pkg := range everyPackage(l.roots) {
			pkg.Types, pkg.TypesInfo, pkg.IllTyped = nil, nil, false
		}
	}
	l.checked = needs
}

// typesNeeded describes the types that the type checker must not skip. The generators crd and
// schemapatch need the types of fields with JSON tags; the generators of Go code need all types.
func (r *run) typesNeeded() (needs string) {
	for _, g := range r.generators {
		switch g.name {
		case "object", "applyconfiguration":
			return "all"
		case "crd", "schemapatch":
			needs = "json"
		}
	}
	return needs
}

package project

import (
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// key returns "Kind.group".
func key(r projectfile.Resource) string {
	return strings.Trim(r.Kind+"."+r.QualifiedGroup(), ".")
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+("[^"\n]+"|\S+)`)

// module returns the path of the module that contains the folder, or "".
func module(dir string) string {
	for {
		if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			if found := moduleLine.FindSubmatch(data); found != nil {
				return strings.Trim(string(found[1]), `"`)
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// findMain sets Module and Main. If there are several managers, it prefers the one with the
// name of the project, and then the only one with a usual name.
func (p *Project) findMain(name string) error {
	p.Module = module(p.Dir)
	if len(p.options.Command) > 0 {
		return nil
	}
	if p.Module == "" {
		return fmt.Errorf("there is no go.mod in %s or its parent folders; if the controller is not a Go program, give its command after --%s", p.Dir, p.commandHint())
	}
	if p.options.Main != "" {
		return p.namedMain(p.options.Main)
	}
	if p.Main = p.usualMain(); p.Main != "" {
		return nil
	}
	var programs, managers []string
	for _, dir := range p.foldersOf("cmd") {
		program, manages := mainPackage(dir)
		if manages {
			managers = append(managers, p.rel(dir))
		}
		if program {
			programs = append(programs, p.rel(dir))
		}
	}
	if idle := p.idleMain(); len(managers) == 0 && idle != "" {
		p.Main = idle
		return nil
	}
	if len(managers) == 0 {
		managers = programs
	}
	if named := filepath.Join("cmd", name); slices.Contains(managers, named) {
		managers = []string{named}
	}
	usual := slices.DeleteFunc(slices.Clone(programs), func(dir string) bool { return !isManagerName(filepath.Base(dir)) })
	if len(managers) > 1 && len(usual) == 1 && p.options.Deployment == "" {
		p.note("%s is built, because its name is a usual one for a manager (use %s to choose another of the programs %s)", usual[0], flagMain, strings.Join(programs, ", "))
		managers = usual
	}
	switch len(managers) {
	case 0:
		return fmt.Errorf("found no main package in cmd, cmd/manager, cmd/* or the project's folder; name the folder of the main package with %s, or give a command after --", flagMain)
	case 1:
		p.Main = managers[0]
		return nil
	}
	p.mains = programs
	if p.options.installs() || p.options.Deployment != "" {
		return nil // the workload of the controller shows which of them it runs
	}
	return p.chooseMain()
}

// isManagerName reports whether a folder has a name that projects with several programs usually
// give to the manager.
func isManagerName(name string) bool {
	return slices.Contains([]string{"controller", "manager", "operator", "controller-manager"}, name)
}

// usualMain searches the usual folders. It ignores a main package that imports only the
// standard library, because a controller needs a client for Kubernetes. It prefers a main package that imports controller-runtime.
func (p *Project) usualMain() string {
	first := ""
	for _, dir := range usualMains {
		program, manages := mainPackage(filepath.Join(p.Dir, dir))
		if manages {
			return dir
		}
		if program && first == "" && p.importsMore(filepath.Join(p.Dir, dir)) {
			first = dir
		}
	}
	return first
}

// idleMain returns the first of the usual folders with a main package that imports only the
// standard library. Such a package often exists only for a tool, and does nothing.
func (p *Project) idleMain() string {
	for _, dir := range usualMains {
		if program, _ := mainPackage(filepath.Join(p.Dir, dir)); program {
			return dir
		}
	}
	return ""
}

// usualMains are the folders in which kubebuilder and operator-sdk put the main package, the
// most recent convention first.
var usualMains = []string{"cmd", ".", "cmd/manager"}

func (p *Project) namedMain(path string) error {
	at := p.path(path)
	if strings.HasSuffix(at, ".go") {
		at = filepath.Dir(at)
	}
	if program, _ := mainPackage(at); !program {
		return fmt.Errorf("%s %s contains no main package; name the folder that contains the manager's func main", flagMain, path)
	}
	p.Main = p.rel(at)
	return nil
}

// foldersOf returns the folder top and all folders inside it.
func (p *Project) foldersOf(top string) []string {
	var folders []string
	_ = filepath.WalkDir(filepath.Join(p.Dir, top), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		if name := entry.Name(); name == "testdata" || name[0] == '.' || name[0] == '_' {
			return fs.SkipDir
		}
		folders = append(folders, path)
		return nil
	})
	return folders
}

// mainPackage reports whether the folder has a main package, and whether that package
// uses controller-runtime for more than its log, as generators of documents do, too.
func mainPackage(dir string) (program, manages bool) {
	imports, program := mainImports(dir)
	return program, slices.ContainsFunc(imports, func(path string) bool {
		return path == controllerRuntime || strings.HasPrefix(path, controllerRuntime+"/") && !strings.HasPrefix(path, controllerRuntime+"/pkg/log")
	})
}

// importsMore reports whether the main package in the folder imports more than the standard
// library, whose import paths begin with a word without a dot.
func (p *Project) importsMore(dir string) bool {
	imports, _ := mainImports(dir)
	return slices.ContainsFunc(imports, func(path string) bool {
		first, _, _ := strings.Cut(path, "/")
		return strings.Contains(first, ".") || strings.HasPrefix(path, p.Module+"/")
	})
}

// mainImports returns what the files of the main package in the folder import, without those that a build
// constraint excludes: some projects have a main package only to keep their tools in go.mod.
func mainImports(dir string) (imports []string, program bool) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range files {
		if built, err := build.Default.MatchFile(dir, filepath.Base(name)); err == nil && !built || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if file == nil || file.Name == nil || file.Name.Name != "main" || err != nil && len(file.Imports) == 0 {
			continue
		}
		program = true
		for _, imported := range file.Imports {
			path, _ := strconv.Unquote(imported.Path.Value)
			imports = append(imports, path)
		}
	}
	return imports, program
}

const controllerRuntime = "sigs.k8s.io/controller-runtime"

// mentions reports whether a Go file of the project contains the text.
func (p *Project) mentions(text string) bool {
	found := false
	_ = filepath.WalkDir(p.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case found:
			return fs.SkipAll
		case entry.IsDir():
			if name := entry.Name(); path != p.Dir && (name == "vendor" || name == "testdata" || name == "bin" || name[0] == '.') {
				return fs.SkipDir
			}
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			data, _ := os.ReadFile(path)
			found = strings.Contains(string(data), text)
		}
		return nil
	})
	return found
}

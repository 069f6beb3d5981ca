package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/rbac"
)

// A Role is a file with roles that is generated from RBAC markers.
type Role struct {
	// Path is the file, relative to the project's folder, with slashes.
	Path string
	// Sources lists the Go files that can contain its markers.
	Sources []string
}

// Roles lists the files with roles that koboshi generate writes for a project, and the project's
// folder. The project does not have to compile.
func Roles(dir string) (project string, roles []Role, err error) {
	g := &generation{options: Options{Dir: dir}, store: newStore(), result: &Result{}}
	if err := g.plan(); err != nil {
		return "", nil, err
	}
	if len(g.result.Problems) > 0 {
		return "", nil, errors.New(g.result.Problems[0].String())
	}
	options, err := optionRegistry()
	if err != nil {
		return "", nil, err
	}
	for _, call := range g.calls {
		r, err := parseCall(options, call)
		if err != nil {
			return "", nil, err
		}
		for _, named := range r.generators {
			generator, ok := named.generator.(rbac.Generator)
			if !ok {
				continue
			}
			sources, err := r.sources()
			if err != nil {
				return "", nil, err
			}
			roles = append(roles, Role{g.relative(r.roleFile(generator)), sources})
		}
	}
	return g.dir, roles, nil
}

// roleFile returns the path of the file with roles, or "" if it is not written to a file.
func (r *run) roleFile(generator rbac.Generator) string {
	name := generator.FileName
	if name == "" {
		name = "role.yaml" // the default of the generator
	}
	switch rule := r.rule("rbac").(type) {
	case genall.OutputToDirectory:
		return inDir(r.call.Dir, filepath.Join(string(rule), name))
	case genall.OutputArtifacts:
		return inDir(r.call.Dir, filepath.Join(string(rule.Config), name))
	}
	return ""
}

// sources lists the Go files, other than tests, below the paths of a call. Paths that are not
// folders are skipped.
func (r *run) sources() (files []string, err error) {
	targets, _, err := r.targets()
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		err := filepath.WalkDir(t.dir, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && path != t.dir && (!t.contains(path) || isModule(path)):
				return fs.SkipDir
			case !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !slices.Contains(files, path):
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// isModule reports whether a folder is the root of a module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

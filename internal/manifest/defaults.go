package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// boilerplate is the file with the license that kubebuilder puts at the top of Go files.
const boilerplate = "hack/boilerplate.go.txt"

// defaultCalls returns the calls of controller-gen in the Makefile that kubebuilder v4.15
// scaffolds.
func defaultCalls(dir string) ([]Call, []string, error) {
	file, err := projectfile.Read(dir)
	if err != nil {
		return nil, nil, err
	}
	calls := []Call{{Dir: dir, Args: []string{
		"rbac:roleName=" + roleName(dir), "crd", "webhook", "paths=./...", "output:crd:artifacts:config=config/crd/bases",
	}}}
	if paths := applyPaths(file); len(paths) > 0 {
		calls = append(calls, Call{Dir: dir, Args: append([]string{"applyconfiguration" + header(dir, false)}, paths...)})
	}
	calls = append(calls, Call{Dir: dir, Args: []string{"object" + header(dir, true), "paths=./..."}})
	return calls, nil, nil
}

// roleName returns the name in the existing role file, which may have a prefix of the project.
func roleName(dir string) string {
	var role struct {
		Metadata struct{ Name string }
	}
	data, err := os.ReadFile(filepath.Join(dir, "config", "rbac", "role.yaml"))
	if err == nil && yaml.Unmarshal(data, &role) == nil && role.Metadata.Name != "" {
		return role.Metadata.Name
	}
	return "manager-role"
}

// header returns the options for the license, if the project has one.
func header(dir string, withYear bool) string {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(boilerplate)))
	if err != nil {
		return ""
	}
	option := ":headerFile=" + boilerplate
	if withYear && bytes.Contains(data, []byte(" YEAR")) {
		option += ",year=" + time.Now().Format("2006")
	}
	return option
}

// applyPaths returns the packages of the APIs that were created with --ssa.
func applyPaths(file *projectfile.File) (paths []string) {
	for _, r := range file.Resources {
		folder, ours := strings.CutPrefix(r.Path, file.Repo+"/")
		if r.API != nil && r.API.SSA && ours {
			paths = append(paths, "paths=./"+folder)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

package project

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// outer returns the folders of the project whose kustomizations include the given folder,
// directly or through others, in the order of their names.
func (p *Project) outer(dir string) []string {
	includes := map[string][]string{} // the folders that a folder's kustomization includes
	_ = filepath.WalkDir(p.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case !entry.IsDir():
			return nil
		case path != p.Dir && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(foreignFolders, entry.Name())):
			return fs.SkipDir
		}
		if file := kustomizationFile(path); file != "" {
			includes[path] = included(file)
		}
		return nil
	})
	var found []string
	for again := true; again; {
		again = false
		for folder, inner := range includes {
			if !slices.Contains(found, folder) && slices.ContainsFunc(inner, func(in string) bool { return in == dir || slices.Contains(found, in) }) {
				found, again = append(found, folder), true
			}
		}
	}
	return p.ofConfig(found)
}

// ofConfig returns the sorted names of the folders. Folders outside config/ are left out if
// there are others, because they are usually for tests.
func (p *Project) ofConfig(folders []string) (names []string) {
	for _, folder := range folders {
		names = append(names, p.rel(folder))
	}
	slices.Sort(names)
	outside := func(name string) bool { return !strings.HasPrefix(filepath.ToSlash(name), "config/") }
	if inside := slices.DeleteFunc(slices.Clone(names), outside); len(inside) > 0 {
		return inside
	}
	return names
}

// included returns the folders that a kustomization includes. If the file cannot be read, there are
// none.
func included(file string) (folders []string) {
	data, err := os.ReadFile(file)
	var content map[string]any
	if err != nil || yaml.Unmarshal(data, &content) != nil {
		return nil
	}
	for _, entry := range slices.Concat(texts(content["resources"]), texts(content["bases"])) {
		folders = append(folders, filepath.Join(filepath.Dir(file), entry))
	}
	return folders
}

// notWhole returns an error if config/default is only a part of the installation: the
// account of the controller has no permissions there, and other kustomizations include
// config/default.
func (p *Project) notWhole(account string) error {
	if p.options.installs() || p.options.Kustomization != "" || p.options.RBAC != "" || p.apartFromProject {
		return nil
	}
	outer := p.outer(filepath.Join(p.Dir, "config", "default"))
	if len(outer) == 0 {
		return nil
	}
	return fmt.Errorf("config/default is only a part of the installation: it grants nothing to the service account %s of the controller; choose a kustomization that includes it with %s: %s",
		account, flagKustomization, strings.Join(outer, ", "))
}

package project

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// mostHints is the number of files that a hint names. mostLooked and largestLooked limit
	// the files that are read for it.
	mostHints     = 3
	mostLooked    = 500
	largestLooked = 256 << 10
)

// foreignFolders are folders that hold no samples of the project.
var foreignFolders = []string{"vendor", "node_modules", "bin", "testdata", "crd", "crds"}

// sampleHint names files of the project that look like samples, although they are not where
// samples are expected. It returns "" if there are none.
func (p *Project) sampleHint() string {
	kinds := p.customKinds()
	if len(kinds) == 0 {
		return ""
	}
	var found []string
	looked := 0
	_ = filepath.WalkDir(p.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // a folder that cannot be read has no hints
		case entry.IsDir() && path != p.Dir && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(foreignFolders, entry.Name())):
			return fs.SkipDir
		case len(found) == mostHints || looked == mostLooked:
			return fs.SkipAll
		case entry.Type().IsRegular() && isYAML(path):
			looked++
			if p.holds(path, entry, kinds) {
				found = append(found, p.rel(path))
			}
		}
		return nil
	})
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("%s may be samples: try %s %s, ", strings.Join(found, ", "), flagSamples, found[0])
}

// holds reports whether a file contains an object of one of the kinds.
func (p *Project) holds(path string, entry fs.DirEntry, kinds map[string]bool) bool {
	if info, err := entry.Info(); err != nil || info.Size() > largestLooked {
		return false
	}
	docs, err := p.readFile(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(docs, func(d document) bool { return kinds[d.Object.GroupVersionKind().GroupKind().String()] })
}

// customKinds returns the kinds that the project's CRDs define, as "Kind.group".
func (p *Project) customKinds() map[string]bool {
	kinds := map[string]bool{}
	crds, err := p.crds()
	if err != nil {
		return nil
	}
	for _, crd := range crds {
		kinds[crd.Spec.Names.Kind+"."+crd.Spec.Group] = true
	}
	return kinds
}

func isYAML(path string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path))
}

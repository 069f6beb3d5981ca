package project

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// mostHints is the number of files that a hint names. mostLooked and largestLooked limit the
	// number and the size of the files that are read for a hint.
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

// manifestKind matches the line that shows that a manifest belongs to an installation.
var manifestKind = regexp.MustCompile(`(?m)^kind: *(CustomResourceDefinition|Deployment|StatefulSet|DaemonSet)\s*$`)

// definitionKind matches the line that shows that a manifest defines a kind.
var definitionKind = regexp.MustCompile(`(?m)^kind: *CustomResourceDefinition\s*$`)

// search returns the folders and files of the project that contain a matching line, and the folders
// of its Helm charts.
func (p *Project) search(wanted *regexp.Regexp) (manifests, charts []string) {
	looked := 0
	_ = filepath.WalkDir(p.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // a folder that cannot be read has no hints
		case entry.IsDir() && path != p.Dir && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(testFolders, entry.Name())):
			return fs.SkipDir
		case entry.Name() == "Chart.yaml":
			charts = append(charts, filepath.Dir(p.rel(path)))
			return fs.SkipDir // its dependencies are not charts of the project, and its templates no manifests
		case looked < mostLooked && entry.Type().IsRegular() && isYAML(path):
			looked++
			if matches(path, wanted) {
				manifests = p.addManifest(manifests, path)
			}
		}
		return nil
	})
	return manifests, charts
}

// installationHint names folders and files of the project that contain CRDs or workloads, and
// its Helm charts. It returns "" if there are none.
func (p *Project) installationHint() string {
	manifests, charts := p.search(manifestKind)
	hint := suchAs(manifests)
	if len(charts) > 0 {
		hint += fmt.Sprintf(", or %s for one of the charts %s", flagHelm, strings.Join(charts, ", "))
	}
	return hint
}

// definitionHint names folders and files of the project that contain CRDs. It returns "" if
// there are none.
func (p *Project) definitionHint() string {
	manifests, _ := p.search(definitionKind)
	return suchAs(manifests)
}

func suchAs(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return ", such as " + strings.Join(paths[:min(len(paths), mostHints)], " or ")
}

// testFolders are folders whose manifests install no controller of the project.
var testFolders = []string{"vendor", "node_modules", "bin", "testdata", "test", "tests", "e2e"}

// addManifest adds the folder of a manifest, or the manifest itself if it is in the project's
// folder. A folder inside another folder of the list is not added, because --manifests reads
// subfolders.
func (p *Project) addManifest(list []string, path string) []string {
	at := filepath.Dir(path)
	if at == p.Dir {
		at = path
	}
	rel := p.rel(at)
	if slices.ContainsFunc(list, func(other string) bool { return within(filepath.ToSlash(rel), filepath.ToSlash(other)) }) {
		return list
	}
	return append(list, rel)
}

// matches reports whether the beginning of a file contains a line that matches.
func matches(path string, wanted *regexp.Regexp) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, largestLooked))
	return err == nil && wanted.Match(data)
}

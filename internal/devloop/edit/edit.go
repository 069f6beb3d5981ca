// Package edit describes what a person changed in a project, and what has to be done about it.
//
// It compares two snapshots instead of counting the events of a file watcher. So an event that
// is lost does no harm, an editor that saves a file in three steps causes one edit, and files
// that koboshi generates itself belong to the next snapshot and are no edit.
package edit

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// An Edit is the difference between two snapshots of a project.
type Edit struct {
	// Files lists the changed files in alphabetical order, relative to the project's folder,
	// with slashes.
	Files []string
	// Generate means that types, markers or the header of generated files may have changed, so
	// that generated files may be out of date.
	Generate bool
	// Build means that the manager has to be built and started again.
	Build bool
	// Apply means that manifests in config have changed.
	Apply bool
	// Samples means that samples have changed.
	Samples bool
	// Module means that go.mod, go.sum or the vendor folder has changed.
	Module bool
}

// Empty reports whether nothing has to be done.
func (e Edit) Empty() bool { return !e.Generate && !e.Build && !e.Apply && !e.Samples }

// Between returns the edit that leads from one snapshot to a later one.
func Between(before, after Snapshot) Edit {
	var e Edit
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, existed := before[name]
		is, exists := after[name]
		if existed && exists && was.content == is.content {
			continue
		}
		e.Files = append(e.Files, name)
		e.add(name, was, is)
	}
	return e
}

// add notes what follows from one changed file. The description of a file that does not exist
// is empty.
func (e *Edit) add(name string, was, is file) {
	role := roleOf(name)
	e.Build = e.Build || role != testFile && (was.embedded || is.embedded)
	switch role {
	case goFile:
		e.Build = true
		e.Generate = e.Generate || was.declared != is.declared
	case testFile:
	case moduleFile:
		e.Build, e.Generate, e.Module = true, true, true
	case headerFile:
		e.Generate = true
	case sampleFile:
		e.Samples = true
	case configFile:
		e.Apply = true
	case otherFile:
	}
}

// The roles that a file can have in a project.
type fileRole int

const (
	otherFile fileRole = iota
	goFile
	testFile
	moduleFile
	headerFile // the text at the top of generated files, a Makefile or PROJECT
	sampleFile
	configFile
)

func roleOf(name string) fileRole {
	switch base := path.Base(name); {
	case strings.HasSuffix(base, "_test.go"):
		return testFile
	case strings.HasSuffix(base, ".go"):
		return goFile
	case base == "go.mod" || base == "go.sum" || base == "go.work" || name == "vendor/modules.txt":
		return moduleFile
	case name == "Makefile" || name == "PROJECT" || strings.HasPrefix(name, "hack/"):
		return headerFile
	case strings.HasPrefix(name, "config/samples/"):
		return sampleFile
	case strings.HasPrefix(name, "config/"):
		return configFile
	}
	return otherFile
}

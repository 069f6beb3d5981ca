// Package edit describes what a person changed in a project, and what has to be done about it.
//
// It compares two snapshots instead of counting the events of a file watcher. So an event that
// is lost does no harm, an editor that saves a file in three steps causes one edit, and files
// that koboshi generates itself belong to the next snapshot and are no edit.
package edit

import (
	"maps"
	"slices"
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
	// Apply means that manifests or the environment of the manager have changed.
	Apply bool
	// Samples means that samples have changed.
	Samples bool
	// Restart means that the manager has to be started again, even if it need not be built.
	Restart bool
	// Module means that go.mod, go.sum or the vendor folder has changed.
	Module bool
}

// Empty reports whether nothing has to be done.
func (e Edit) Empty() bool { return !e.Generate && !e.Build && !e.Apply && !e.Samples && !e.Restart }

// And combines two edits into one that requires everything that either of them requires.
func (e Edit) And(other Edit) Edit {
	files := slices.Concat(e.Files, other.Files)
	slices.Sort(files)
	return Edit{
		Files:    slices.Compact(files),
		Generate: e.Generate || other.Generate,
		Build:    e.Build || other.Build,
		Apply:    e.Apply || other.Apply,
		Samples:  e.Samples || other.Samples,
		Restart:  e.Restart || other.Restart,
		Module:   e.Module || other.Module,
	}
}

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
		e.add(was, is)
	}
	return e
}

// add records what has to be done about one changed file. The description of a file that does not
// exist is empty.
func (e *Edit) add(was, is file) {
	role := is.role
	if role == otherFile { // perhaps because the file no longer exists
		role = was.role
	}
	e.Build = e.Build || role != testFile && (was.embedded || is.embedded)
	switch role {
	case goFile:
		e.Build = true
		e.Generate = e.Generate || was.declared != is.declared
	case moduleFile:
		e.Build, e.Generate, e.Module = true, true, true
	case headerFile:
		e.Generate = true
	case sampleFile:
		e.Samples = true
	case configFile, envFile:
		e.Apply = true
	case programFile:
		e.Restart = true
	case otherFile, testFile:
	}
}

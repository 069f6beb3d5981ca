package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"sigs.k8s.io/controller-tools/pkg/applyconfiguration"
	"sigs.k8s.io/controller-tools/pkg/genall"
)

// processState protects the current folder and os.Args, which the generator of apply
// configurations uses. Nothing else in this package depends on the current folder.
var processState sync.Mutex

// applyConfigurations runs the generator of apply configurations. It writes files itself, into a
// folder below the package's folder, and loads packages from the current folder. Therefore it gets
// a temporary folder, from which its files are read.
func (g *generation) applyConfigurations(r *run, generator genall.Generator, generation *genall.GenerationContext) (err error) {
	options := generator.(applyconfiguration.Generator)
	if options.HeaderFile != "" {
		options.HeaderFile = inDir(r.call.Dir, options.HeaderFile)
		g.store.inputs[options.HeaderFile] = true
	}
	// Without this, the files would name the running program as their generator.
	omit := true
	options.OmitToolVersion = &omit

	temporary, err := os.MkdirTemp("", "koboshi-generate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	for _, root := range generation.Roots {
		dir := root.Dir
		root.Dir = temporary + dir
		defer func() { root.Dir = dir }()
	}
	if err := inFolder(r.call.Dir, func() error { return options.Generate(generation) }); err != nil {
		return err
	}
	return filepath.WalkDir(temporary, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = g.store.create(strings.TrimPrefix(path, temporary)).Write(data)
		return err
	})
}

// inFolder calls f while dir is the current folder.
func inFolder(dir string, f func() error) error {
	processState.Lock()
	defer processState.Unlock()
	before, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	defer func() { _ = os.Chdir(before) }()
	return f()
}

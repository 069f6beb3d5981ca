package assets

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// module identifies our own executables, because the go command writes it into each of
// them.
const module = "github.com/koboshi-dev/koboshi"

// Installation is the result of Install.
type Installation struct {
	Dir      string   `json:"dir"`
	Files    []string `json:"files"`    // names in Dir
	Replaced []string `json:"replaced"` // the files that were replaced
	Linked   bool     `json:"linked"`   // the files are hard links to one file
}

// A ForeignError is a refusal to replace files that do not belong to Koboshi.
type ForeignError struct {
	Dir   string
	Files []string // names in Dir
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s contains %s from another program", e.Dir, strings.Join(e.Files, ", "))
}

// Install puts the running executable into dir under each of the names in Names. The files
// are regular, because some tools skip symbolic links. Each file is replaced in one step,
// so it does no harm if a file is in use or the installation is interrupted. Files that do
// not belong to Koboshi are replaced only with force; without force nothing is written, and
// the error is a *ForeignError.
func Install(dir string, force bool) (Installation, error) {
	exe, err := os.Executable()
	if err != nil {
		return Installation{}, fmt.Errorf("finding the running executable: %w", err)
	}
	done, err := install(exe, dir, force, os.Link)
	if err != nil {
		return done, fmt.Errorf("installing into %s: %w", dir, err)
	}
	return done, nil
}

func install(exe, dir string, force bool, link func(from, to string) error) (Installation, error) {
	done := Installation{Dir: dir, Files: Names(), Replaced: []string{}}
	var foreign []string
	for _, name := range done.Files {
		there, err := look(filepath.Join(dir, name))
		if err != nil {
			return done, err
		}
		if there != absent {
			done.Replaced = append(done.Replaced, name)
		}
		if there == theirs {
			foreign = append(foreign, name)
		}
	}
	if len(foreign) > 0 && !force {
		return done, &ForeignError{Dir: dir, Files: foreign}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return done, err
	}
	removeLeftovers(dir)
	var err error
	done.Linked, err = place(exe, dir, link)
	return done, err
}

// place prepares all files under temporary names before it replaces the first one, so that
// failures such as a full disk happen before any file is replaced.
func place(exe, dir string, link func(from, to string) error) (linked bool, err error) {
	names := Names()
	temps := make([]string, len(names))
	for i := range temps {
		temps[i] = tempName(dir)
		defer func() { _ = os.Remove(temps[i]) }()
	}
	if err := copyFile(exe, temps[0]); err != nil {
		return false, err
	}
	linked = true
	for _, temp := range temps[1:] {
		if link(temps[0], temp) == nil {
			continue
		}
		// The file system has no hard links.
		linked = false
		if err := copyFile(exe, temp); err != nil {
			return false, err
		}
	}
	for i, name := range names {
		if err := os.Rename(temps[i], filepath.Join(dir, name)); err != nil {
			return linked, err
		}
	}
	return linked, nil
}

// occupant describes the file that an installation would replace.
type occupant int

const (
	absent occupant = iota
	ours
	theirs
)

func look(path string) (occupant, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return absent, nil
	}
	if err != nil {
		return theirs, err
	}
	if info.IsDir() {
		return theirs, fmt.Errorf("%s is a folder, but must be a file; remove the folder", path)
	}
	build, err := buildinfo.ReadFile(path)
	if err == nil && (build.Path == module || strings.HasPrefix(build.Path, module+"/")) {
		return ours, nil
	}
	return theirs, nil
}

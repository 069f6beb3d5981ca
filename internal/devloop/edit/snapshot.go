package edit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A Snapshot holds what matters of a project's files, by their path in the project's folder.
type Snapshot map[string]file

// With returns a copy of the snapshot in which the named files are replaced by those of a later
// snapshot.
func (s Snapshot) With(later Snapshot, names []string) Snapshot {
	with := maps.Clone(s)
	for _, name := range names {
		if is, ok := later[name]; ok {
			with[name] = is
		} else {
			delete(with, name)
		}
	}
	return with
}

// file describes the content of one file.
type file struct {
	role     fileRole
	size     int64
	modified time.Time
	content  sum
	// declared identifies the parts of a Go file that generators read.
	declared sum
	// embeds is set for a Go file that embeds other files, and embedded for a file in the folder of
	// such a Go file.
	embeds, embedded bool
}

type sum [sha256.Size]byte

// Take reads the files of a project. It reads a file again only if the size or time differs from
// the earlier snapshot, which must have the same layout.
func (l Layout) Take(earlier Snapshot) (Snapshot, error) {
	taken := Snapshot{}
	err := l.walk(func(location string, entry fs.DirEntry) error {
		if !entry.Type().IsRegular() || temporary(entry.Name()) {
			return nil
		}
		name, err := filepath.Rel(l.Dir, location)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		is, err := l.read(location, name, entry, earlier[name])
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		taken[name] = is
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the project's files: %w", err)
	}
	taken.markEmbedded()
	return taken, nil
}

// Folders returns the folders whose files belong to snapshots.
func (l Layout) Folders() (folders []string, err error) {
	err = l.walk(func(location string, entry fs.DirEntry) error {
		if entry.IsDir() {
			folders = append(folders, location)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the project's folders: %w", err)
	}
	return folders, nil
}

// walk visits the folders and files of the project, except foreign folders.
func (l Layout) walk(visit func(location string, entry fs.DirEntry) error) error {
	return filepath.WalkDir(l.Dir, func(location string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && location != l.Dir:
			return nil // deleted while the folder is read; the next snapshot notices
		case errors.Is(err, fs.ErrPermission) && location != l.Dir:
			return nil // such as the data of a database; no compiler could read it either
		case err != nil:
			return err
		case entry.IsDir() && location != l.Dir && l.foreign(location, entry.Name()):
			return fs.SkipDir
		}
		return visit(location, entry)
	})
}

// foreign reports whether a folder holds no source of the project, such as a hidden folder, a
// folder of programs or of packages for Node.js, or another module. A folder that the layout names
// is not foreign.
func (l Layout) foreign(location, name string) bool {
	switch name {
	case "bin", "dist", "testdata", "node_modules":
		return !l.names(name)
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	if l.Main != "" && within(filepath.Join(l.Dir, filepath.FromSlash(l.Main)), location) {
		return false
	}
	_, err := os.Stat(filepath.Join(location, "go.mod"))
	return err == nil
}

// within reports whether a path is a folder or in it.
func within(at, folder string) bool {
	return at == folder || strings.HasPrefix(at, folder+string(filepath.Separator))
}

// temporary reports whether an editor uses the file while it saves another one.
func temporary(name string) bool {
	return name != envName && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") ||
		strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".tmp") || name == "4913")
}

func (l Layout) read(location, name string, entry fs.DirEntry, earlier file) (file, error) {
	info, err := entry.Info()
	if err != nil {
		return file{}, err
	}
	if !earlier.modified.IsZero() && earlier.size == info.Size() && earlier.modified.Equal(info.ModTime()) {
		return earlier, nil
	}
	is := file{role: l.roleOf(name), size: info.Size(), modified: info.ModTime()}
	if is.role == otherFile {
		// Such files can be large, and few of them are a part of the manager.
		is.content = sha256.Sum256(fmt.Append(nil, is.size, is.modified.UnixNano()))
		return is, nil
	}
	data, err := os.ReadFile(location)
	if err != nil {
		return file{}, err
	}
	is.content = sha256.Sum256(data)
	if is.role == goFile {
		d := declarations(data)
		is.declared, is.embeds = d.sum, d.embeds
	}
	return is, nil
}

// markEmbedded marks the files that Go code may embed: those in its folder and below.
func (s Snapshot) markEmbedded() {
	embedding := map[string]bool{}
	for name, f := range s {
		embedding[path.Dir(name)] = embedding[path.Dir(name)] || f.embeds
	}
	for name, f := range s {
		f.embedded = false
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			if f.embedded = embedding[dir]; f.embedded || dir == "." {
				break
			}
		}
		s[name] = f
	}
}

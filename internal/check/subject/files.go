package subject

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Mount is a volume of the controller's Pod, with the files that it has when the controller
// starts.
type Mount struct {
	// Path is the absolute path of the volume in the Pod.
	Path string `json:"path"`
	// Files maps paths relative to Path to contents, which may be secret. The name "" means
	// that Path itself is a file. An empty map means an empty folder that is writable.
	Files map[string][]byte `json:"files,omitempty"`
}

// WriteFiles writes the files of all mounts below the folder root, each at its path in the
// Pod. Only the current user can read them.
func WriteFiles(root string, mounts []Mount) error {
	for _, mount := range mounts {
		at := mount.below(root)
		if _, isFile := mount.Files[""]; !isFile {
			if err := os.MkdirAll(at, 0o700); err != nil {
				return fmt.Errorf("writing the volume %s of the controller: %w", mount.Path, err)
			}
		}
		for name, content := range mount.Files {
			file := filepath.Join(at, filepath.FromSlash(path.Clean("/"+name)))
			err := os.MkdirAll(filepath.Dir(file), 0o700)
			if err == nil {
				err = os.WriteFile(file, content, 0o600)
			}
			if err != nil {
				return fmt.Errorf("writing the volume %s of the controller: %w", mount.Path, err)
			}
		}
	}
	return nil
}

// EmptyFiles removes what the controller wrote into its writable volumes, as if its Pod were
// new. WriteFiles must have written the mounts below the same folder.
func EmptyFiles(root string, mounts []Mount) error {
	for _, mount := range mounts {
		if len(mount.Files) > 0 {
			continue
		}
		at := mount.below(root)
		entries, err := os.ReadDir(at)
		for _, entry := range entries {
			if path := filepath.Join(at, entry.Name()); err == nil && !holds(mounts, root, path) {
				err = os.RemoveAll(path)
			}
		}
		if err != nil {
			return fmt.Errorf("emptying the volume %s of the controller: %w", mount.Path, err)
		}
	}
	return nil
}

// holds reports whether another volume is mounted at or below a folder.
func holds(mounts []Mount, root, folder string) bool {
	return slices.ContainsFunc(mounts, func(other Mount) bool {
		at := other.below(root)
		return at == folder || strings.HasPrefix(at, folder+string(filepath.Separator))
	})
}

// below returns the path of the volume below the folder root.
func (m Mount) below(root string) string {
	return filepath.Join(root, filepath.FromSlash(path.Clean("/"+m.Path)))
}

// Relocate prefixes the paths of all mounts and of their files with $(KOBOSHI_ROOT). It
// returns new texts.
func Relocate(texts []string, mounts []Mount) []string {
	texts = slices.Clone(texts)
	if len(mounts) == 0 {
		return texts
	}
	var paths []string
	for _, mount := range mounts {
		paths = append(paths, regexp.QuoteMeta(path.Clean("/"+mount.Path)))
	}
	// Of two paths, the regular expression must try the longer one first.
	slices.SortFunc(paths, func(a, b string) int { return len(b) - len(a) })
	mounted, err := regexp.Compile(`(^|[=,:;\s"'])(` + strings.Join(paths, "|") + `)($|[/,:;\s"'])`)
	if err != nil {
		return texts // a path that is not valid UTF-8 cannot be in a manifest
	}
	for i := range texts {
		texts[i] = mounted.ReplaceAllString(texts[i], "${1}$$("+Root+")${2}${3}")
	}
	return texts
}

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
	// that Path itself is a file. An empty map means an empty folder that is writable. The
	// contents AccountToken and AccountCA stand for values of a controller instance.
	Files map[string][]byte `json:"files,omitempty"`
}

// Each of these constants stands for the complete content of a file. WriteAccount replaces them
// with the token of the service account and the certificate of the API server's authority.
const (
	AccountToken = "$(KOBOSHI_ACCOUNT_TOKEN)"
	AccountCA    = "$(KOBOSHI_ACCOUNT_CA)"
)

// WriteFiles writes the files of all mounts below the folder root, each at its path in the
// Pod. Only the current user can read them.
func WriteFiles(root string, mounts []Mount) error {
	for _, mount := range mounts {
		if _, isFile := mount.Files[""]; !isFile {
			if err := os.MkdirAll(mount.at(root, ""), 0o700); err != nil {
				return fmt.Errorf("writing the volume %s of the controller: %w", mount.Path, err)
			}
		}
		for name, content := range mount.Files {
			if err := mount.write(root, name, content); err != nil {
				return err
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
		at := mount.at(root, "")
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

// WriteAccount writes the files of the mounts that have the token of the service account or
// the certificate of its API server.
func WriteAccount(root string, mounts []Mount, token string, ca []byte) error {
	values := map[string][]byte{AccountToken: []byte(token), AccountCA: ca}
	for _, mount := range mounts {
		for name, content := range mount.Files {
			value, isAccount := values[string(content)]
			if !isAccount {
				continue
			}
			if err := mount.write(root, name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds reports whether another volume is mounted at or below a folder.
func holds(mounts []Mount, root, folder string) bool {
	return slices.ContainsFunc(mounts, func(other Mount) bool {
		at := other.at(root, "")
		return at == folder || strings.HasPrefix(at, folder+string(filepath.Separator))
	})
}

// at returns the path of a file below the folder root.
func (m Mount) at(root, name string) string {
	return filepath.Join(root, filepath.FromSlash(path.Clean("/"+m.Path)), filepath.FromSlash(path.Clean("/"+name)))
}

func (m Mount) write(root, name string, content []byte) error {
	file := m.at(root, name)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the volume %s of the controller: %w", m.Path, err)
	}
	return nil
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

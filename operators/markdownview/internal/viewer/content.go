package viewer

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

// These limits of a content directory prevent the viewer from filling the memory if a wrong
// directory was chosen. The volumes of a site are far smaller than these limits.
const (
	mostFiles = 20_000
	mostBytes = 512 << 20
)

// snapshot holds the files of a directory at one time.
type snapshot struct {
	files []book.File
	hash  [sha256.Size]byte
	// print is a fingerprint of the directory, which is cheaper to compute than hash.
	print [sha256.Size]byte
}

// errMoved reports that the directory changed while it was read.
var errMoved = errors.New("the directory changed while it was read")

// directory reads a content directory.
//
// Kubernetes writes the new files of a volume next to the old ones, and then swaps the link
// ..data. Therefore, all files are read from the target that ..data has at the start, and
// ..data is checked again at the end. A directory without the link ..data is edited by a
// person: hidden files in it (.git, files of text editors) are not content, and links must
// not lead outside it.
type directory struct {
	path   string
	logger *slog.Logger
}

// root returns the directory that currently holds the files.
func (d directory) root() (at string, volume bool, err error) {
	if target, err := os.Readlink(filepath.Join(d.path, "..data")); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(d.path, target)
		}
		return target, true, nil
	}
	at, err = filepath.EvalSymlinks(d.path)
	return at, false, err
}

// read reads all files in one consistent state of the directory.
func (d directory) read() (*snapshot, error) {
	const attempts = 5
	var err error
	for range attempts {
		var s *snapshot
		if s, err = d.attempt(); err == nil {
			return s, nil
		}
		if !errors.Is(err, errMoved) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, fmt.Errorf("reading %s: %w", d.path, err)
}

func (d directory) attempt() (*snapshot, error) {
	at, volume, err := d.root()
	if err != nil {
		return nil, err
	}
	before, err := d.printOf(at, volume)
	if err != nil {
		return nil, err
	}
	s := &snapshot{print: before}
	sum := sha256.New()
	size := int64(0)
	err = d.walk(at, volume, func(root *os.Root, name string, info fs.FileInfo) error {
		if size += info.Size(); size > mostBytes || len(s.files) == mostFiles {
			return fmt.Errorf("the directory has more than %d files or %d MiB; check that --content names the right directory", mostFiles, mostBytes>>20)
		}
		data, err := root.ReadFile(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		s.files = append(s.files, book.File{Path: name, Data: data})
		sum.Write(binary.AppendUvarint(nil, uint64(len(name))))
		sum.Write([]byte(name))
		sum.Write(binary.AppendUvarint(nil, uint64(len(data))))
		sum.Write(data)
		return nil
	})
	if err != nil {
		return nil, err
	}
	after, err := d.fingerprint()
	if err != nil {
		return nil, err
	}
	if after != before {
		return nil, errMoved
	}
	sum.Sum(s.hash[:0])
	return s, nil
}

// fingerprint returns a hash of the names, sizes and times of the files. In a volume, the
// directory to which the link ..data leads never changes, so only its location is hashed.
func (d directory) fingerprint() (print [sha256.Size]byte, err error) {
	at, volume, err := d.root()
	if err != nil {
		return print, err
	}
	return d.printOf(at, volume)
}

func (d directory) printOf(at string, volume bool) (print [sha256.Size]byte, err error) {
	sum := sha256.New()
	sum.Write([]byte(at))
	if !volume {
		err = d.walk(at, volume, func(_ *os.Root, name string, info fs.FileInfo) error {
			_, err := fmt.Fprintf(sum, "\x00%s\x00%d %d", name, info.Size(), info.ModTime().UnixNano())
			return err
		})
	}
	sum.Sum(print[:0])
	return print, err
}

// walk calls visit for each file, ordered by name.
func (d directory) walk(at string, volume bool, visit func(root *os.Root, name string, info fs.FileInfo) error) error {
	root, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != "." && hidden(path.Base(name), volume) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		info, err := root.Stat(filepath.FromSlash(name))
		if err != nil {
			if entry.Type()&fs.ModeSymlink != 0 {
				d.logger.Warn("ignored a link that leads outside the content or to a missing file", "path", name)
				return nil
			}
			return err
		}
		if !info.Mode().IsRegular() {
			return nil // a linked directory, a socket, a pipe
		}
		return visit(root, name, info)
	})
}

func hidden(name string, volume bool) bool {
	if volume {
		return strings.HasPrefix(name, "..")
	}
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~")
}

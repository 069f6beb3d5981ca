package footprint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Files maps the path of each file in memory to the number of bytes it uses.
type Files map[string]int64

// InMemory lists the files of all memory-backed file systems that can be read.
func InMemory() (Files, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("finding memory-backed file systems: %w", err)
	}
	files := Files{}
	for _, root := range memoryBacked(string(mounts)) {
		files.add(root)
	}
	return files, nil
}

// memoryBacked reads a table of mounts; see fstab(5).
func memoryBacked(mounts string) (roots []string) {
	// The table of mounts escapes spaces in octal.
	blanks := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 2 && (fields[2] == "tmpfs" || fields[2] == "ramfs") {
			roots = append(roots, blanks.Replace(fields[1]))
		}
	}
	return roots
}

// add walks one file system, but not the file systems mounted inside it. It skips
// unreadable files, which belong to another user.
func (f Files) add(root string) {
	var top syscall.Stat_t
	if syscall.Lstat(root, &top) != nil {
		return
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		var stat syscall.Stat_t
		if err != nil || syscall.Lstat(path, &stat) != nil {
			return nil
		}
		if stat.Dev != top.Dev {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.Type().IsRegular() {
			f[path] = stat.Blocks * 512
		}
		return nil
	})
}

// charged returns the files that before does not contain, and the files that are held open.
func (f Files) charged(before Files, held map[string]bool) Files {
	charged := Files{}
	for path, size := range f {
		if _, old := before[path]; !old || held[path] {
			charged[path] = size
		}
	}
	return charged
}

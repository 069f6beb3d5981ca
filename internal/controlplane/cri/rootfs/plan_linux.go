package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A Mount is a file or folder that appears at another path.
type Mount struct {
	Source, Target string
	ReadOnly       bool
	Recursive      bool // whether ReadOnly also applies to mounts below the source
	Slave          bool // whether later mounts below the source appear at the target
}

// A Plan describes a container's files; Apply creates them.
type Plan struct {
	// Staging is an empty folder on which Apply may mount.
	Staging string
	// Image is a folder with the files of an image, which replace those of this machine; empty means
	// those of this machine.
	Image string
	// ReadOnly makes everything read-only except the Mounts, /proc and
	// /dev/shm.
	ReadOnly bool
	// Program appears at each of the Names that does not exist yet.
	Program string
	Names   []string
	// Mounts are made in the order of their depth, parents first.
	Mounts []Mount
	// Dirs are created if they do not exist.
	Dirs []string
}

// Apply changes the mount namespace and the root directory of the calling thread, which must not
// share them with another thread. Apply needs CAP_SYS_ADMIN in the namespace's user namespace, and
// Linux 5.12.
func (p Plan) Apply() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("separating mounts: %w", err)
	}
	mounts := slices.Clone(p.Mounts)
	slices.SortStableFunc(mounts, func(a, b Mount) int { return depth(a.Target) - depth(b.Target) })
	// All sources are opened first, because a mount may hide another source.
	trees, err := take(mounts)
	defer closeAll(trees)
	if err != nil {
		return err
	}
	programs, err := p.programs()
	defer closeAll(programs)
	if err != nil {
		return err
	}
	made := covers{staging: p.Staging, own: map[uint64]bool{}}
	if err := made.root(p.Image); err != nil {
		return err
	}
	if err := made.devices(); err != nil {
		return err
	}
	if err := p.prepare(&made, mounts, trees); err != nil {
		return err
	}
	if err := p.showProgram(&made, programs); err != nil {
		return err
	}
	if err := made.clean(); err != nil {
		return err
	}
	if p.ReadOnly {
		if err := readOnly(); err != nil {
			return err
		}
	}
	for i, m := range mounts {
		if err := attach(trees[i], m, below(mounts, m.Target)); err != nil {
			return err
		}
	}
	return nil
}

func depth(path string) int { return strings.Count(filepath.Clean(path), "/") }

// below reports whether the path is inside another mount, in which case it must
// exist in that mount, or be created once the mount is in place.
func below(mounts []Mount, path string) bool {
	return slices.ContainsFunc(mounts, func(m Mount) bool {
		return strings.HasPrefix(filepath.Clean(path), strings.TrimSuffix(filepath.Clean(m.Target), "/")+"/")
	})
}

// prepare creates all mount points that are not inside another mount.
func (p Plan) prepare(made *covers, mounts []Mount, trees []int) error {
	for i, m := range mounts {
		dir, err := isDir(trees[i])
		if err != nil {
			return fmt.Errorf("volume for %s: %w", m.Target, err)
		}
		if below(mounts, m.Target) {
			continue
		}
		if err := made.ensure(m.Target, dir); err != nil {
			return fmt.Errorf("mountPath %s: %w", m.Target, err)
		}
	}
	for _, dir := range p.Dirs {
		if below(mounts, dir) {
			continue
		}
		if err := made.ensure(dir, true); err != nil {
			return fmt.Errorf("workingDir %s: %w", dir, err)
		}
	}
	return nil
}

// programs returns one copy of the program's mount for each name.
func (p Plan) programs() (trees []int, err error) {
	for range p.Names {
		tree, err := clone(p.Program)
		if err != nil {
			return trees, fmt.Errorf("program %s: %w", p.Program, err)
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

func (p Plan) showProgram(made *covers, trees []int) error {
	for i, name := range p.Names {
		if _, err := os.Stat(name); err == nil {
			continue
		}
		if err := made.ensure(name, false); err != nil {
			return fmt.Errorf("making the program visible in the container at %s: %w", name, err)
		}
		if err := move(trees[i], name); err != nil {
			return fmt.Errorf("making the program visible in the container at %s: %w", name, err)
		}
	}
	return nil
}

// readOnly makes the root file system read-only. As in other container runtimes, /dev/shm
// stays writable: shared memory is not on disk.
func readOnly() error {
	if err := setAttributes(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("making the root file system read-only: %w", err)
	}
	// The parent of the container's first process must write to
	// /proc/PID/uid_map.
	if err := setAttributes(unix.AT_FDCWD, "/proc", 0, unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("keeping /proc writable: %w", err)
	}
	if _, err := os.Stat("/dev/shm"); err != nil {
		return nil
	}
	if err := unix.Mount("shm", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=64m"); err != nil {
		return fmt.Errorf("mounting /dev/shm: %w", err)
	}
	return nil
}

func take(mounts []Mount) (trees []int, err error) {
	for _, m := range mounts {
		tree, err := clone(m.Source)
		if errors.Is(err, fs.ErrNotExist) {
			return trees, fmt.Errorf("volume for %s: %s does not exist", m.Target, m.Source)
		} else if err != nil {
			return trees, fmt.Errorf("volume for %s: opening %s: %w", m.Target, m.Source, err)
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

func closeAll(files []int) {
	for _, f := range files {
		_ = unix.Close(f)
	}
}

// clone copies the mounts at and below a path, so that they can be attached
// elsewhere.
func clone(path string) (int, error) {
	return unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
}

func move(tree int, target string) error {
	return unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
}

func isDir(tree int) (bool, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(tree, "", &stat, unix.AT_EMPTY_PATH)
	return stat.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

// attach makes the mount. A mount point inside another volume may still be
// missing; attach creates it there, as other container runtimes do.
func attach(tree int, m Mount, inside bool) error {
	if inside {
		if err := createIn(tree, m.Target); err != nil {
			return fmt.Errorf("creating mountPath %s inside another volume: %w", m.Target, err)
		}
	}
	attributes := unix.MountAttr{Propagation: unix.MS_PRIVATE}
	if m.Slave {
		attributes.Propagation = unix.MS_SLAVE
	}
	if err := setAttributes(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attributes); err != nil {
		return fmt.Errorf("mountPath %s: %w", m.Target, err)
	}
	if m.ReadOnly {
		flags := uint(unix.AT_EMPTY_PATH)
		if m.Recursive {
			flags |= unix.AT_RECURSIVE
		}
		if err := setAttributes(tree, "", flags, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("making mountPath %s read-only: %w", m.Target, err)
		}
	}
	if err := move(tree, m.Target); err != nil {
		return fmt.Errorf("mountPath %s: mounting %s: %w", m.Target, m.Source, err)
	}
	return nil
}

func setAttributes(dir int, path string, flags uint, attributes unix.MountAttr) error {
	err := unix.MountSetattr(dir, path, flags, &attributes)
	if errors.Is(err, unix.ENOSYS) {
		return errors.New("this kernel cannot change mounts (mount_setattr): use Linux 5.12 or later")
	}
	return err
}

func createIn(tree int, target string) error {
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	dir, err := isDir(tree)
	if err != nil {
		return err
	}
	return create(target, dir)
}

func create(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

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

// covers keeps track of the covers: folders that are mounted over other folders
// and show the content of those folders.
type covers struct {
	staging string
	own     map[uint64]bool // the device numbers of covers
}

// root covers "/", with the files of an image unless image is empty.
func (c *covers) root(image string) error {
	stage := func() error { return c.stage("/") }
	if image != "" {
		stage = func() error { return c.stageImage(image) }
	}
	if err := stage(); err != nil {
		return fmt.Errorf("creating a root folder: %w", err)
	}
	if err := unix.Chdir(c.staging); err != nil {
		return fmt.Errorf("entering the new root folder: %w", err)
	}
	// If both arguments are the same folder, the old root is mounted on top of
	// the new one.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root folder: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root folder: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("entering the new root folder: %w", err)
	}
	if image != "" {
		c.staging = ownStaging // the other one is not in the image
		if err := os.Mkdir(ownStaging, 0o700); err != nil {
			return fmt.Errorf("preparing the root folder of the image: %w", err)
		}
	}
	return c.settled("/")
}

// ownStaging is the staging folder in the root folder of an image, until clean removes it.
const ownStaging = "/.koboshi"

// clean removes what only the assembly has needed.
func (c *covers) clean() error {
	if c.staging != ownStaging {
		return nil
	}
	return os.Remove(ownStaging)
}

// cover covers a folder other than "/". The path must not contain symlinks.
func (c *covers) cover(dir string) error {
	if err := c.stage(dir); err != nil {
		return err
	}
	if err := unix.Mount(c.staging, dir, "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("covering %s: %w", dir, err)
	}
	return c.settled(dir)
}

// stage prepares the cover of a folder at another path: once the cover is in
// place, the folder below it can no longer be reached.
func (c *covers) stage(dir string) error {
	if err := c.mount(dir); err != nil {
		return err
	}
	return c.show(dir, func(name string) bool { return dir != "/dev" || slices.Contains(devices, name) })
}

// system lists the folders that the kernel provides, also for images.
var system = []string{"dev", "proc", "sys"}

// stageImage prepares a cover of "/" with the files of an image.
func (c *covers) stageImage(image string) error {
	if err := c.mount(image); err != nil {
		return err
	}
	if err := c.show(image, func(name string) bool { return !slices.Contains(system, name) }); err != nil {
		return err
	}
	return c.show("/", func(name string) bool { return slices.Contains(system, name) })
}

// mount mounts an empty cover of a folder on the staging folder.
func (c *covers) mount(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("mode=%o", info.Mode().Perm())
	if info.Mode()&fs.ModeSticky != 0 {
		options = fmt.Sprintf("mode=1%o", info.Mode().Perm())
	}
	if err := unix.Mount("koboshi", c.staging, "tmpfs", 0, options); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	// If the tmpfs were not unbindable, the unfinished cover would appear
	// inside itself when dir contains the staging folder.
	if err := unix.Mount("", c.staging, "", unix.MS_UNBINDABLE, ""); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	return nil
}

// settled turns a cover that is in place into an ordinary mount.
func (c *covers) settled(dir string) error {
	if err := unix.Mount("", dir, "", unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("covering %s: %w", dir, err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return fmt.Errorf("covering %s: %w", dir, err)
	}
	c.own[stat.Dev] = true
	return nil
}

// devices lists the devices that every container has. A machine has about a
// hundred other devices, which a Pod would have to request, and each would cost
// time at every start. Terminals come from devpts.
var devices = []string{
	"fd", "full", "mqueue", "null", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero",
}

// devices covers /dev. The container has its own terminals, which need their
// own /dev/ptmx, not a bind mount of the machine's /dev/ptmx.
func (c *covers) devices() error {
	if err := c.cover("/dev"); err != nil {
		return err
	}
	if err := os.Mkdir("/dev/pts", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("mounting /dev/pts: %w", err)
	}
	return os.Symlink("pts/ptmx", "/dev/ptmx")
}

// show adds those entries of dir to the staging folder for whose names the function returns true.
func (c *covers) show(dir string, wanted func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("making the contents of %s visible in the container: %w", dir, err)
	}
	for _, entry := range entries {
		if !wanted(entry.Name()) {
			continue
		}
		if err := showEntry(entry, filepath.Join(dir, entry.Name()), filepath.Join(c.staging, entry.Name())); err != nil {
			return fmt.Errorf("making the contents of %s visible in the container: %w", dir, err)
		}
	}
	return nil
}

func showEntry(entry fs.DirEntry, from, to string) error {
	if entry.Type()&fs.ModeSymlink != 0 {
		goal, err := os.Readlink(from)
		if err != nil {
			return ignoreGone(err)
		}
		return os.Symlink(goal, to)
	}
	if err := create(to, entry.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return ignoreGone(fmt.Errorf("%s: %w", from, err))
	}
	return nil
}

// ignoreGone ignores errors about files that have vanished in the meantime, or
// that this user may not see anyway, such as another user's FUSE mount; an
// empty file or folder remains in their place.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// ensure creates the path if it does not exist, as a folder or as a file to
// mount on.
func (c *covers) ensure(path string, dir bool) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q is not absolute", path)
	}
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() != dir {
			return fmt.Errorf("%s is %s on this machine, but the volume is %s: choose another path", path, kind(info.IsDir()), kind(dir))
		}
		return nil
	}
	parent, rest, err := existing(path)
	if err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Stat(parent, &stat); err != nil {
		return fmt.Errorf("%s: %w", parent, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return fmt.Errorf("%s is a file on this machine: choose another path", parent)
	}
	if !c.own[stat.Dev] {
		if err := c.cover(parent); err != nil {
			return err
		}
	}
	// A dangling symlink would be in the way of the new file.
	if first := filepath.Join(parent, rest[0]); isSymlink(first) {
		if err := os.Remove(first); err != nil {
			return err
		}
	}
	return create(filepath.Join(append([]string{parent}, rest...)...), dir)
}

func kind(dir bool) string {
	if dir {
		return "a folder"
	}
	return "a file"
}

func isSymlink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// existing splits a path after the last existing folder, and resolves the
// symlinks in the first part.
func existing(path string) (parent string, rest []string, err error) {
	parts := strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	for i := len(parts) - 1; i >= 0; i-- {
		prefix := "/" + filepath.Join(parts[:i]...)
		if _, err := os.Stat(prefix); err != nil {
			continue
		}
		parent, err = filepath.EvalSymlinks(prefix)
		return parent, parts[i:], err
	}
	return "", nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
}

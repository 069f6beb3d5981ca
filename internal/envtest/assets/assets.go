// Package assets makes folders with the executables that envtest needs: etcd,
// kube-apiserver and kubectl. Each executable is this program, which behaves according to
// the name under which it is called.
package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Names lists the executables by the names that envtest uses.
func Names() []string { return []string{"etcd", "kube-apiserver", "kubectl"} }

// copyName is the name of a copy of the program. A copy is made if links to the program
// would break.
const copyName = "koboshi"

// keepFor is the time for which a copy is kept after its last use.
const keepFor = 7 * 24 * time.Hour

// Folder returns a folder for KUBEBUILDER_ASSETS whose files are links to the running executable,
// or to a copy of it. Folder creates or repairs the folder; several processes may call Folder at
// the same time. The path stays the same as long as the executable stays in place.
func Folder() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the running executable: %w", err)
	}
	root, err := os.UserCacheDir()
	if err == nil {
		var dir string
		if dir, err = folder(filepath.Join(root, "koboshi", "envtest"), exe); err == nil {
			return dir, nil
		}
	}
	// HOME is not set or not writable, as in some build sandboxes.
	temp, tempErr := private(os.TempDir())
	if tempErr == nil {
		var dir string
		if dir, tempErr = folder(filepath.Join(temp, "envtest"), exe); tempErr == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("creating a folder for envtest: in the cache folder: %w; in the temporary folder: %w; set XDG_CACHE_HOME or TMPDIR to a writable folder", err, tempErr)
}

// folder makes the folder for exe in root.
func folder(root, exe string) (string, error) {
	sum := sha256.Sum256([]byte(exe))
	dir := filepath.Join(root, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	target := exe
	if passing(exe) {
		target = filepath.Join(dir, copyName)
		if err := keep(exe, target); err != nil {
			return "", err
		}
		removeUnused(root, time.Now().Add(-keepFor))
	}
	for _, name := range Names() {
		if err := point(filepath.Join(dir, name), target); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// passing reports whether exe belongs to the go command, which will remove it. go run
// builds in a temporary folder and, like go tool, may run from the build cache. The paths
// of the temporary folder and of the cache contain a folder whose name starts with
// go-build.
func passing(exe string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(filepath.Dir(exe)), "/"), func(dir string) bool {
		return strings.HasPrefix(dir, "go-build")
	})
}

// keep copies exe unless the copy exists already, and marks the folder as used.
func keep(exe, target string) error {
	source, err := os.Stat(exe)
	if err != nil {
		return err
	}
	kept, err := os.Stat(target)
	if err != nil || kept.Size() != source.Size() || !kept.ModTime().Equal(source.ModTime()) {
		removeLeftovers(filepath.Dir(target))
		if err := replace(target, func(temp string) error { return copyFile(exe, temp) }); err != nil {
			return err
		}
		if err := os.Chtimes(target, time.Time{}, source.ModTime()); err != nil {
			return err
		}
	}
	now := time.Now()
	return os.Chtimes(filepath.Dir(target), now, now)
}

// removeUnused removes folders in root that hold a copy and were last used before the
// given time. Each copy is as large as the program, and go run causes one copy per build.
// A folder that cannot be removed now is removed later.
func removeUnused(root string, before time.Time) {
	entries, _ := os.ReadDir(root)
	for _, entry := range entries {
		dir := filepath.Join(root, entry.Name())
		if _, err := os.Stat(filepath.Join(dir, copyName)); err != nil {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.ModTime().Before(before) {
			_ = os.RemoveAll(dir)
		}
	}
}

// point makes name a symbolic link to target.
func point(name, target string) error {
	if now, err := os.Readlink(name); err == nil && now == target {
		return nil
	}
	return replace(name, func(temp string) error { return os.Symlink(target, temp) })
}

// private makes a folder for this user only, inside a folder that all users share. If
// another user owned the new folder, that user could run programs as this user.
func private(shared string) (string, error) {
	uid := os.Getuid()
	dir := filepath.Join(shared, "koboshi-"+strconv.Itoa(uid))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(owner.Uid) != uid || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s must be a folder that only this user can write to", dir)
	}
	return dir, nil
}

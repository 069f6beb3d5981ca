package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/kubernetes/pkg/kubelet"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// guardedOS prevents upstream from removing or writing files outside the
// kubelet's folder. A kubelet assumes that it owns its machine, but this
// kubelet must not change the user's machine.
type guardedOS struct {
	kubecontainer.RealOS
	root string
}

// own reports whether the path is inside the kubelet's folder.
func (g guardedOS) own(path string) bool {
	return filepath.IsAbs(path) && strings.HasPrefix(filepath.Clean(path), filepath.Clean(g.root)+"/")
}

func (g guardedOS) foreign(doing, path string) error {
	return fmt.Errorf("%s %q: the path is not below %s", doing, path, g.root)
}

// MkdirAll creates folders. MkdirAll ignores folders in /var/log, which would hold only links to
// logs.
func (g guardedOS) MkdirAll(path string, perm os.FileMode) error {
	if legacyLogs(path) {
		return nil
	}
	if !g.own(path) {
		return g.foreign("making", path)
	}
	return g.RealOS.MkdirAll(path, perm)
}

// Symlink creates links. Symlink ignores links to logs, which are in /var/log.
func (g guardedOS) Symlink(oldname, newname string) error {
	if legacyLogs(newname) {
		return nil
	}
	if !g.own(newname) {
		return g.foreign("linking", newname)
	}
	return g.RealOS.Symlink(oldname, newname)
}

// Remove removes a file if it is in the kubelet's folder.
func (g guardedOS) Remove(path string) error {
	if legacyLogs(path) {
		return nil
	}
	if !g.own(path) {
		return g.foreign("removing", path)
	}
	return g.RealOS.Remove(path)
}

// RemoveAll removes a folder if it is in the kubelet's folder.
func (g guardedOS) RemoveAll(path string) error {
	if !g.own(path) {
		return g.foreign("removing", path)
	}
	return g.RealOS.RemoveAll(path)
}

// Rename moves a file within the kubelet's folder.
func (g guardedOS) Rename(oldpath, newpath string) error {
	if !g.own(oldpath) || !g.own(newpath) {
		return g.foreign("moving", oldpath)
	}
	return g.RealOS.Rename(oldpath, newpath)
}

// Create creates a file if it is in the kubelet's folder.
func (g guardedOS) Create(path string) (*os.File, error) {
	if !g.own(path) {
		return nil, g.foreign("creating", path)
	}
	return g.RealOS.Create(path)
}

// Glob finds files, but ignores files in /var/log, where any links belong to
// another kubelet.
func (g guardedOS) Glob(pattern string) ([]string, error) {
	if legacyLogs(pattern) {
		return nil, nil
	}
	return g.RealOS.Glob(pattern)
}

func legacyLogs(path string) bool {
	return path == kubelet.DefaultContainerLogsDir || strings.HasPrefix(path, kubelet.DefaultContainerLogsDir+"/")
}

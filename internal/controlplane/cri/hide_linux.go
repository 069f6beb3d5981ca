package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/rootfs"
)

// hidden returns mounts that cover the hidden paths with an empty file or folder. A volume of
// the Pod at such a path, above it or below it takes precedence: the Pod asked for it.
func (r *Runtime) hidden(p *process) (mounts []rootfs.Mount, err error) {
	for _, path := range r.config.HidePaths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || p.mountsAt(path) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("hiding %s: %w", path, err)
		}
		empty, err := r.empty(info.IsDir())
		if err != nil {
			return nil, fmt.Errorf("hiding %s: %w", path, err)
		}
		mounts = append(mounts, rootfs.Mount{Source: empty, Target: path, ReadOnly: true})
	}
	return mounts, nil
}

// mountsAt reports whether a volume of the Pod is at the path, above it or below it.
func (p *process) mountsAt(path string) bool {
	for _, m := range p.config.GetMounts() {
		target := filepath.Clean(m.GetContainerPath())
		if target == path || strings.HasPrefix(path, target+"/") || strings.HasPrefix(target, path+"/") {
			return true
		}
	}
	return false
}

// empty returns the path of an empty folder or file.
func (r *Runtime) empty(dir bool) (string, error) {
	if dir {
		path := filepath.Join(r.config.Dir, "empty-dir")
		return path, os.MkdirAll(path, 0o700)
	}
	path := filepath.Join(r.config.Dir, "empty-file")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return "", err
	}
	return path, file.Close()
}

package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/rootfs"
)

// hidden returns mounts that cover the hidden paths with an empty file or folder. A volume of the
// Pod at such a path or above it takes precedence, because the Pod asked for it. If a volume is
// mounted below such a path, everything else in the folder stays hidden.
func (r *Runtime) hidden(p *process) (mounts []rootfs.Mount, err error) {
	for _, path := range r.config.HidePaths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || p.hasVolume(func(target string) bool { return within(target, path) }) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("hiding %s: %w", path, err)
		}
		// The mount point of a volume is created inside the folder, so other containers must
		// not share it.
		name, own := "empty", p.hasVolume(func(target string) bool { return within(path, target) })
		if own {
			name += "-" + p.id
		}
		empty, err := r.empty(name, info.IsDir())
		if err != nil {
			return nil, fmt.Errorf("hiding %s: %w", path, err)
		}
		mounts = append(mounts, rootfs.Mount{Source: empty, Target: path, ReadOnly: !own})
	}
	return mounts, nil
}

// hasVolume reports whether the path of a volume of the Pod satisfies a condition.
func (p *process) hasVolume(at func(target string) bool) bool {
	return slices.ContainsFunc(p.config.GetMounts(), func(m *runtimeapi.Mount) bool { return at(filepath.Clean(m.GetContainerPath())) })
}

// empty returns the path of an empty folder or file.
func (r *Runtime) empty(name string, dir bool) (string, error) {
	if dir {
		path := filepath.Join(r.config.Dir, name+"-dir")
		return path, os.MkdirAll(path, 0o700)
	}
	path := filepath.Join(r.config.Dir, name+"-file")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return "", err
	}
	return path, file.Close()
}

package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume"
)

// confined refuses a hostPath outside the allowed folders. The runtime would
// also refuse the path, but only after upstream has created it, as the type or
// subPath of the volume can require.
type confined struct {
	volume.VolumePlugin
	folders []string
}

// NewMounter returns the mounter of the volume if the path is allowed.
func (p confined) NewMounter(spec *volume.Spec, pod *corev1.Pod) (volume.Mounter, error) {
	source := hostPathOf(spec)
	if source == nil {
		return nil, errors.New("the volume has no hostPath")
	}
	real, err := resolved(source.Path)
	if err != nil {
		return nil, fmt.Errorf("hostPath %s: %w", source.Path, err)
	}
	for _, folder := range p.folders {
		folder, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return nil, fmt.Errorf("hostPath %s: %w", source.Path, err)
		}
		if real == folder || strings.HasPrefix(real, strings.TrimSuffix(folder, "/")+"/") {
			return p.VolumePlugin.NewMounter(spec, pod)
		}
	}
	return nil, fmt.Errorf("hostPath %s: only folders below %s may be mounted; use one of those, or an emptyDir",
		source.Path, strings.Join(p.folders, " or "))
}

func hostPathOf(spec *volume.Spec) *corev1.HostPathVolumeSource {
	switch {
	case spec.Volume != nil:
		return spec.Volume.HostPath
	case spec.PersistentVolume != nil:
		return spec.PersistentVolume.Spec.HostPath
	}
	return nil
}

// resolved returns the path without symlinks. The last elements of the path may
// not exist yet. A dangling symlink is an error, because creating the path
// would create the target of the symlink.
func resolved(path string) (string, error) {
	path = filepath.Clean(path)
	_, err := os.Lstat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		return path, err
	}
	parent, err := resolved(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

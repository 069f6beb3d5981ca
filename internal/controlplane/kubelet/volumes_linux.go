package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
)

// volumePlugins returns the plugins that need only this machine. A Pod with
// another kind of volume gets the error that no plugin matches.
func (c Config) volumePlugins() (plugins []volume.VolumePlugin) {
	for _, plugin := range hostpath.ProbeVolumePlugins(volume.VolumeConfig{}) {
		plugins = append(plugins, confined{unowned{plugin}, c.HostPaths})
	}
	for _, some := range [][]volume.VolumePlugin{
		emptydir.ProbeVolumePlugins(),
		secret.ProbeVolumePlugins(),
		configmap.ProbeVolumePlugins(),
		downwardapi.ProbeVolumePlugins(),
		projected.ProbeVolumePlugins(),
	} {
		for _, plugin := range some {
			plugins = append(plugins, unowned{plugin})
		}
	}
	return plugins
}

// unowned never changes the owner of a volume to the user or group of a Pod.
// The kubelet's namespace has only one user, and every program runs as that
// user, regardless of the user ID that it sees.
type unowned struct{ volume.VolumePlugin }

// NewMounter returns the mounter of the volume.
func (p unowned) NewMounter(spec *volume.Spec, pod *corev1.Pod) (volume.Mounter, error) {
	m, err := p.VolumePlugin.NewMounter(spec, pod)
	if err != nil {
		return nil, err
	}
	return unownedMounter{m}, nil
}

type unownedMounter struct{ volume.Mounter }

// SetUp mounts the volume.
func (m unownedMounter) SetUp(args volume.MounterArgs) error {
	args.FsUser, args.FsGroup = nil, nil
	return m.Mounter.SetUp(args)
}

// SetUpAt mounts the volume at a folder.
func (m unownedMounter) SetUpAt(dir string, args volume.MounterArgs) error {
	args.FsUser, args.FsGroup = nil, nil
	return m.Mounter.SetUpAt(dir, args)
}

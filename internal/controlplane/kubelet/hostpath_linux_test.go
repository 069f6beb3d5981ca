package kubelet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume"
)

type willing struct{ volume.VolumePlugin }

func (willing) NewMounter(*volume.Spec, *corev1.Pod) (volume.Mounter, error) { return nil, nil }

// Upstream creates a missing folder anywhere before it calls a runtime, so the
// mounter must refuse the path.
func TestAHostPathOutsideIsRefusedBeforeAnythingIsCreatedThere(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	inside, outside := filepath.Join(base, "in"), filepath.Join(base, "in-the-way")
	for _, err := range []error{
		os.Mkdir(inside, 0o700), os.Mkdir(outside, 0o700),
		os.Symlink(outside, filepath.Join(inside, "link")),
		os.Symlink(filepath.Join(outside, "none"), filepath.Join(inside, "dangling")),
		os.Symlink(inside, filepath.Join(base, "alias")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	plugin := confined{willing{}, []string{filepath.Join(base, "alias")}}
	for path, allowed := range map[string]bool{
		inside:                          true,
		inside + "/new/er":              true,
		base + "/alias/new":             true,
		outside:                         false,
		outside + "/new":                false,
		inside + "/../in-the-way/new":   false,
		inside + "/link/new":            false,
		inside + "/dangling":            false,
		inside + "/new/../../elsewhere": false,
		"/":                             false,
	} {
		source := &corev1.HostPathVolumeSource{Path: path}
		for _, spec := range []*volume.Spec{
			{Volume: &corev1.Volume{VolumeSource: corev1.VolumeSource{HostPath: source}}},
			{PersistentVolume: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: source}}}},
		} {
			_, err := plugin.NewMounter(spec, nil)
			if (err == nil) != allowed || err != nil && !strings.Contains(err.Error(), "hostPath "+path) {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

func TestHostPathsAreConfined(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := &volume.Spec{Volume: &corev1.Volume{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}}}
	for _, plugin := range (Config{HostPaths: []string{dir}}).volumePlugins() {
		if !plugin.CanSupport(spec) {
			continue
		}
		if _, err := plugin.NewMounter(spec, nil); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s mounts /etc: %v", plugin.GetPluginName(), err)
		}
		return
	}
	t.Error("no plugin takes a hostPath")
}

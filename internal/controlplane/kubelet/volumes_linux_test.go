package kubelet

import (
	"testing"

	"k8s.io/kubernetes/pkg/volume"
)

type recorded struct {
	volume.Mounter
	args *volume.MounterArgs
}

func (r recorded) SetUp(args volume.MounterArgs) error             { *r.args = args; return nil }
func (r recorded) SetUpAt(_ string, args volume.MounterArgs) error { *r.args = args; return nil }

// The kubelet's namespace has only one user, so a volume cannot be given to
// another user, and a Pod fails if the kubelet tries to do so.
func TestVolumesAreGivenToNobody(t *testing.T) {
	t.Parallel()
	id := int64(2000)
	for name, setUp := range map[string]func(volume.Mounter, volume.MounterArgs) error{
		"SetUp":   volume.Mounter.SetUp,
		"SetUpAt": func(m volume.Mounter, args volume.MounterArgs) error { return m.SetUpAt("", args) },
	} {
		var got volume.MounterArgs
		if err := setUp(unownedMounter{recorded{args: &got}}, volume.MounterArgs{FsUser: &id, FsGroup: &id}); err != nil {
			t.Fatal(err)
		}
		if got.FsUser != nil || got.FsGroup != nil {
			t.Errorf("%s: given to %v and %v", name, got.FsUser, got.FsGroup)
		}
	}
}

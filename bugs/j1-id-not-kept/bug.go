package j1

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/cloud"
)

// byStatus has the bug of crossplane/crossplane-runtime#279. byStatus stores the ID from the cloud
// only in the status. If the ID is not stored, because of a kill or a lost response, there seems to
// be no volume, and a second one is created. The first volume is never deleted.
type byStatus struct{ *cloud.Client }

func (c byStatus) volume(ctx context.Context, v *Volume) (cloud.Volume, error) {
	if v.Status.ID != "" {
		return c.Get(ctx, v.Status.ID)
	}
	return c.Create(ctx, string(v.UID), v.Spec.Size)
}

func (c byStatus) release(ctx context.Context, v *Volume) error {
	if v.Status.ID == "" {
		return nil
	}
	return c.Delete(ctx, v.Status.ID)
}

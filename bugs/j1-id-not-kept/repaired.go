package j1

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/cloud"
)

// byName finds a volume in the cloud by its name. The name is the UID of the Volume, so the
// controller knows the name before there is an ID.
type byName struct{ *cloud.Client }

func (c byName) volume(ctx context.Context, v *Volume) (cloud.Volume, error) {
	all, err := c.List(ctx, string(v.UID))
	if err != nil {
		return cloud.Volume{}, err
	}
	if len(all) > 0 {
		return all[0], nil
	}
	return c.Create(ctx, string(v.UID), v.Spec.Size)
}

func (c byName) release(ctx context.Context, v *Volume) error {
	all, err := c.List(ctx, string(v.UID))
	if err != nil {
		return err
	}
	for _, made := range all {
		if err := c.Delete(ctx, made.ID); err != nil {
			return err
		}
	}
	return nil
}

package b3

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// byWhatIsThere removes the member of each surplus claim and, once the member is gone,
// the claim.
//
// RIGHT: the existing objects show the progress, so it need not be stored. The claim is
// deleted last, so it exists as long as there is work left.
func byWhatIsThere(ctx context.Context, k child.Keeper, ring *Ring) (bool, error) {
	last, err := surplus(ctx, k.Live, ring)
	if err != nil || last < 0 {
		return err == nil, err
	}
	if current, err := k.Current(ctx, ring); err != nil || !current {
		return false, err
	}
	for i := last; i >= ring.Spec.Nodes; i-- {
		if gone, err := k.Remove(ctx, memberOf(ring, i), child.OwnedBy(ring)); err != nil || !gone {
			return false, err
		}
		if gone, err := k.Remove(ctx, claimOf(ring, i), child.OwnedBy(ring)); err != nil || !gone {
			return false, err
		}
	}
	return true, nil
}

package b3

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// byWhatIsThere takes away the member of each claim that is not wanted, and once it
// is gone, the claim.
//
// RIGHT: how far that is, is seen from what is there. The claim goes last, so as
// long as there is something to do there is a claim that says so.
func byWhatIsThere(ctx context.Context, k keep.Keeper, ring *Ring) (bool, error) {
	last, err := surplus(ctx, k.Live, ring)
	if err != nil || last < 0 {
		return err == nil, err
	}
	if current, err := k.Current(ctx, ring); err != nil || !current {
		return false, err
	}
	for i := last; i >= ring.Spec.Nodes; i-- {
		if gone, err := k.Gone(ctx, memberOf(ring, i)); err != nil || !gone {
			return false, err
		}
		if gone, err := k.Gone(ctx, claimOf(ring, i)); err != nil || !gone {
			return false, err
		}
	}
	return true, nil
}

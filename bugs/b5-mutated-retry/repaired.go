package b5

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// oneTry changes the object and updates it.
//
// RIGHT: an update that fails is an error of the reconcile. The next one begins with
// an object that was read anew.
func oneTry(ctx context.Context, k keep.Keeper, release *Release, change func(*Release) bool) error {
	if !change(release) {
		return nil
	}
	return k.Update(ctx, release)
}

// nothing waits for nothing: there is no more to do for a release without the
// finalizer, whether it is gone or not.
func nothing(context.Context, keep.Keeper, *Release) error { return nil }

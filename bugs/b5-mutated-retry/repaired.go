package b5

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// oneTry changes the object and updates it.
//
// RIGHT: if the update fails, the reconcile fails. The next reconcile starts with an
// object that was read again.
func oneTry(ctx context.Context, k child.Keeper, release *Release, change func(*Release) bool) error {
	if !change(release) {
		return nil
	}
	return k.Update(ctx, release)
}

// nothing replaces waitUntilGone, and returns immediately. A release without the
// finalizer needs no more work, whether it is gone or not.
func nothing(context.Context, child.Keeper, *Release) error { return nil }

package b5

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// tries is how often an update is tried.
const tries = 3

// sameObject changes the object and updates it, again if it fails.
//
// WRONG: the second try finds the change made already, in memory, so there is
// nothing to update, and that counts as success. Taken from
// operator-framework/helm-operator-plugins#378.
func sameObject(ctx context.Context, k keep.Keeper, release *Release, change func(*Release) bool) error {
	var err error
	for range tries {
		if !change(release) {
			return nil
		}
		if err = k.Update(ctx, release); err == nil {
			return nil
		}
	}
	return err
}

// waitUntilGone waits for the release to be gone, now that no finalizer holds it.
//
// WRONG, as there: if the finalizer is still on, it waits for ever, and the worker
// with it.
func waitUntilGone(ctx context.Context, k keep.Keeper, release *Release) error {
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var now Release
		err := k.Get(ctx, client.ObjectKeyFromObject(release), &now)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

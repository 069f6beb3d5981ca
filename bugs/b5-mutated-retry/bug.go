package b5

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// tries is the number of attempts at an update.
const tries = 3

// sameObject changes the object and updates it. It tries again if the update fails.
//
// WRONG: the second attempt finds the object already changed in memory, so there seems to be
// nothing to update, and the function reports success. The bug is taken from
// operator-framework/helm-operator-plugins#378.
func sameObject(ctx context.Context, k child.Keeper, release *Release, change func(*Release) bool) error {
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

// waitUntilGone waits until the release is gone, assuming that no finalizer holds it any
// more.
//
// WRONG, as in the real case: if the finalizer is still there, the function waits forever,
// and blocks the worker.
func waitUntilGone(ctx context.Context, k child.Keeper, release *Release) error {
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var now Release
		err := k.Get(ctx, client.ObjectKeyFromObject(release), &now)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

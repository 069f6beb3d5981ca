package h1

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// insist has the bug of argoproj/argo-rollouts#4073. insist writes an object that was read before
// another client's write, and so undoes that write. In the real case, the old object is written
// into the cache. insist instead "solves" a conflict by copying only the resourceVersion, as is
// often seen.
func (r *reconciler) insist(ctx context.Context, a *Assignment) error {
	err := r.Update(ctx, a)
	if !apierrors.IsConflict(err) {
		return err
	}
	var latest Assignment
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(a), &latest); err != nil {
		return client.IgnoreNotFound(err)
	}
	a.ResourceVersion = latest.ResourceVersion
	return r.Update(ctx, a)
}

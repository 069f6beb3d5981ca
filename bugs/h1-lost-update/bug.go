package h1

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// insist has the bug of argoproj/argo-rollouts#4073: an object that was read before
// another client's write overwrites that write. In the real case it is written into the
// cache; here, as is often seen, a conflict is "solved" by copying the resourceVersion
// and nothing else.
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

package h1

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// insist is the bug of argoproj/argo-rollouts#4073: what was read before somebody
// else wrote goes over what they wrote. There it is written into the cache; here,
// as often seen, a conflict is "solved" by taking over the resourceVersion and
// nothing else.
func (r *reconciler) insist(ctx context.Context, a *Assignment) error {
	err := r.Update(ctx, a)
	if !apierrors.IsConflict(err) {
		return err
	}
	var latest Assignment
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(a), &latest); err != nil {
		return client.IgnoreNotFound(err)
	}
	a.ResourceVersion = latest.ResourceVersion
	return r.Update(ctx, a)
}

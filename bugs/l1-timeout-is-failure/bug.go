package l1

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// nextThatWorks is the bug of cert-manager/cert-manager#6837: the creation of a
// request times out although the request is created, and another one is made with
// a higher revision. Then there are two, which cert-manager leaves to a person.
func (r *reconciler) nextThatWorks(ctx context.Context, c *Certificate) error {
	var err error
	for revision := c.Status.Revision + 1; revision <= c.Status.Revision+3; revision++ {
		if err = r.create(ctx, c, revision); err == nil {
			return nil
		}
		ctrl.LoggerFrom(ctx).Info("no request with this revision", "revision", revision, "cause", err.Error())
	}
	return err
}

package l1

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// nextThatWorks has the bug of cert-manager/cert-manager#6837. The creation of a request
// times out although the request was created, so another one is created with a higher
// revision. If there are two requests, cert-manager leaves the choice to a person.
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

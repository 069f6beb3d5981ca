package h2

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reportIfPossible has the bug that tgoodwin/kamera#76 found in fluxcd's
// source-controller: the status is written with the resourceVersion that was read, and a
// conflict is ignored. The write that caused the conflict did not change the generation,
// so nothing ever starts another reconcile.
func (r *reconciler) reportIfPossible(ctx context.Context, s *Source) error {
	err := r.Status().Update(ctx, s)
	if apierrors.IsConflict(err) {
		return nil // the other write will have woken us up
	}
	return err
}

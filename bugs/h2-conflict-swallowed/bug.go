package h2

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reportIfPossible has the bug that tgoodwin/kamera#76 found in the source-controller of fluxcd.
// reportIfPossible writes the status with the resourceVersion that it has read, and ignores a
// conflict. The write that caused the conflict did not change the generation, so nothing ever
// starts another reconcile.
func (r *reconciler) reportIfPossible(ctx context.Context, s *Source) error {
	err := r.Status().Update(ctx, s)
	if apierrors.IsConflict(err) {
		return nil // assumes that the other client's write starts another reconcile
	}
	return err
}

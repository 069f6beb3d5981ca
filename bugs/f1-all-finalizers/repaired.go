package f1

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// removeFinalizer removes only the controller's own finalizer. The update is refused if the
// BatchJob has changed since it was read.
func (r *reconciler) removeFinalizer(ctx context.Context, j *BatchJob) error {
	controllerutil.RemoveFinalizer(j, finalizer)
	return r.Update(ctx, j)
}

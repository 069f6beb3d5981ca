package f1

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clearFinalizers is the bug of ROCm/spur#75: to be done with its own finalizer the
// controller patches the list to be empty. Whoever else wanted to do something
// before the object goes does not get to it. (tigera/operator#4492 is the same
// merge patch of a whole list, with what was read a moment earlier in it.)
func (r *reconciler) clearFinalizers(ctx context.Context, j *BatchJob) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`))
	return r.Patch(ctx, j, patch)
}

package f1

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clearFinalizers has the bug of ROCm/spur#75: to remove its own finalizer, the
// controller replaces the list by an empty one. Other controllers that wanted to act
// before the object is gone do not get the chance. (tigera/operator#4492 is also a merge
// patch of the whole list, with a content that was read a moment earlier.)
func (r *reconciler) clearFinalizers(ctx context.Context, j *BatchJob) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`))
	return r.Patch(ctx, j, patch)
}

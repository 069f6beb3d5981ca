package f1

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clearFinalizers has the bug of ROCm/spur#75. To remove its own finalizer, the controller
// replaces the list of finalizers with an empty one. Other controllers get no chance to act
// before the object is gone. (The controller of tigera/operator#4492 also sends the entire
// list as a merge patch, with content that it read a moment earlier.)
func (r *reconciler) clearFinalizers(ctx context.Context, j *BatchJob) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`))
	return r.Patch(ctx, j, patch)
}

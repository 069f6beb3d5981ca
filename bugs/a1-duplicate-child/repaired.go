package a1

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// fixedName makes a run whose name follows from the rollout and its version.
//
// RIGHT: a second one cannot be, whatever the cache knows, since the server refuses
// it. That is how argoproj/argo-rollouts#255 mended it.
func fixedName(ctx context.Context, k keep.Keeper, rollout *Rollout, _ []Run) (bool, error) {
	run := &Run{}
	run.Namespace, run.Name = rollout.Namespace, runName(rollout)
	return k.Child(ctx, rollout, run, describe(k, rollout, run))
}

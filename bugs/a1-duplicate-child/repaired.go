package a1

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// fixedName creates a run whose name is derived from the rollout and its version.
//
// RIGHT: as in the fix argoproj/argo-rollouts#255, the server refuses a second run, no
// matter what is in the cache.
func fixedName(ctx context.Context, k child.Keeper, rollout *Rollout, _ []Run) (bool, error) {
	run := &Run{}
	run.Namespace, run.Name = rollout.Namespace, runName(rollout)
	return k.Ensure(ctx, rollout, run, describe(k, rollout, run))
}

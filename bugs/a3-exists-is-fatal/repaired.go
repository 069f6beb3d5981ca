package a3

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// askServer makes the ReplicaSet.
//
// RIGHT: what the server says exists is read from the server. That is how commit
// 80d21fb1a of argo-rollouts mended it. Nothing here is fatal: every error is
// tried again.
func askServer(ctx context.Context, k keep.Keeper, experiment *Experiment) (bool, error) {
	set := setOf(experiment)
	return k.Child(ctx, experiment, set, describe(k, experiment, set))
}

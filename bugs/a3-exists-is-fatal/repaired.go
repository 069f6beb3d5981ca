package a3

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// askServer creates the ReplicaSet.
//
// RIGHT: if the server answers that the ReplicaSet exists, it is read from the server, as
// in commit 80d21fb1a of argo-rollouts. No error is fatal here; every error leads to
// another attempt.
func askServer(ctx context.Context, k child.Keeper, experiment *Experiment) (bool, error) {
	set := setOf(experiment)
	return k.Ensure(ctx, experiment, set, describe(k, experiment, set))
}

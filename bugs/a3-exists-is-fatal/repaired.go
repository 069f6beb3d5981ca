package a3

import (
	"context"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// askServer creates the ReplicaSet.
//
// RIGHT: if the server answers that it exists, it is read from the server, as in the
// fix 80d21fb1a of argo-rollouts. Nothing here is fatal: after every error it is tried
// again.
func askServer(ctx context.Context, k child.Keeper, experiment *Experiment) (bool, error) {
	set := setOf(experiment)
	return k.Ensure(ctx, experiment, set, describe(k, experiment, set))
}

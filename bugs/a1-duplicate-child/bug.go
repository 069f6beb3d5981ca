package a1

import (
	"context"
	"fmt"
	"strings"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// anyName creates a run if the cache has none, and lets the server choose the name.
//
// WRONG: the cache may lack a run that was created a moment ago, and nothing prevents the
// server from creating a second run under another name. The bug is taken from
// argoproj/argo-rollouts#243, where one rollout had four AnalysisRuns.
func anyName(ctx context.Context, k child.Keeper, rollout *Rollout, runs []Run) (bool, error) {
	for _, run := range runs {
		if strings.HasPrefix(run.Name, runName(rollout)) && run.DeletionTimestamp.IsZero() {
			return k.Ensure(ctx, rollout, &run, describe(k, rollout, &run))
		}
	}
	if current, err := k.Current(ctx, rollout); err != nil || !current {
		return false, err
	}
	run := &Run{}
	run.Namespace, run.GenerateName = rollout.Namespace, runName(rollout)+"-"
	describe(k, rollout, run)()
	if err := k.Create(ctx, run); err != nil {
		return false, fmt.Errorf("creating a run for %s: %w", rollout.Name, err)
	}
	return false, nil
}

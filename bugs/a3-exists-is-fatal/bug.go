package a3

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// askCache creates the ReplicaSet if the cache has none. If the server answers that the
// ReplicaSet already exists, askCache reads it from the cache.
//
// WRONG: the cache did not have the ReplicaSet a moment ago, so the cache probably still
// answers "not found". The controller treats "not found" as the reason why the ReplicaSet
// could not be created, and the experiment stays in Error permanently. The bug is taken
// from argoproj/argo-rollouts#4842.
func askCache(ctx context.Context, k child.Keeper, experiment *Experiment) (bool, error) {
	set := setOf(experiment)
	key := client.ObjectKeyFromObject(set)
	err := k.Get(ctx, key, set)
	if err == nil {
		return k.Ensure(ctx, experiment, set, describe(k, experiment, set))
	}
	if !apierrors.IsNotFound(err) {
		return false, err
	}
	if current, err := k.Current(ctx, experiment); err != nil || !current {
		return false, err
	}
	describe(k, experiment, set)()
	err = k.Create(ctx, set)
	if !apierrors.IsAlreadyExists(err) {
		return false, err
	}
	if err := k.Get(ctx, key, set); err != nil {
		return false, fmt.Errorf("%w: %w", errFatal, err)
	}
	return k.Ensure(ctx, experiment, set, describe(k, experiment, set))
}

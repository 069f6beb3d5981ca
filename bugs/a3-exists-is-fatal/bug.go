package a3

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// askCache makes the ReplicaSet if the cache has none; if the server says that
// there is one, it asks the cache for it.
//
// WRONG: that is the cache that did not know it a moment ago. Its "not found" is
// then taken for the reason why the ReplicaSet could not be made, and the
// experiment is in Error for good. Taken from argoproj/argo-rollouts#4842.
func askCache(ctx context.Context, k keep.Keeper, experiment *Experiment) (bool, error) {
	set := setOf(experiment)
	key := client.ObjectKeyFromObject(set)
	err := k.Get(ctx, key, set)
	if err == nil {
		return k.Child(ctx, experiment, set, describe(k, experiment, set))
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
	return k.Child(ctx, experiment, set, describe(k, experiment, set))
}

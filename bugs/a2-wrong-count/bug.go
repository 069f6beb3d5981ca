package a2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// byDifference makes or deletes as many workers as the cache has too few or too many.
//
// WRONG: the cache may not know the workers that were made a moment ago; then they are
// made once more, and once it knows them all, running workers are deleted. In the
// end the number is right. Taken from ray-project/kuberay#715; in
// kubernetes/kubernetes#129795 the same comes when expectations expire.
func byDifference(ctx context.Context, k keep.Keeper, group *Group, workers []Worker) (bool, error) {
	slices.SortFunc(workers, func(a, b Worker) int { return strings.Compare(a.Name, b.Name) })
	for i := range workers {
		worker := &workers[i]
		if i >= group.Spec.Replicas {
			if err := k.Remove(ctx, worker); err != nil {
				return false, err
			}
		} else if _, err := k.Child(ctx, group, worker, describe(k, group, worker)); err != nil {
			return false, err
		}
	}
	if len(workers) >= group.Spec.Replicas {
		return len(workers) == group.Spec.Replicas, nil
	}
	if current, err := k.Current(ctx, group); err != nil || !current {
		return false, err
	}
	for range group.Spec.Replicas - len(workers) {
		worker := &Worker{}
		worker.Namespace, worker.GenerateName = group.Namespace, group.Name+"-"
		describe(k, group, worker)()
		if err := k.Create(ctx, worker); err != nil {
			return false, fmt.Errorf("creating a worker of %s: %w", group.Name, err)
		}
	}
	return false, nil
}

package a2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// byDifference compares the number of workers in the cache with the desired number,
// and creates the missing workers or deletes the surplus ones.
//
// WRONG: the cache may lack workers that were created a moment ago. Workers that the cache
// lacks are created a second time, and as soon as the cache has them all, running workers
// are deleted. The final number of workers is correct. The bug is taken from
// ray-project/kuberay#715; kubernetes/kubernetes#129795 has the same effect when
// expectations expire.
func byDifference(ctx context.Context, k child.Keeper, group *Group, workers []Worker) (bool, error) {
	slices.SortFunc(workers, func(a, b Worker) int { return strings.Compare(a.Name, b.Name) })
	for i := range workers {
		worker := &workers[i]
		if i >= group.Spec.Replicas {
			if _, err := k.Remove(ctx, worker, child.OwnedBy(group)); err != nil {
				return false, err
			}
		} else if _, err := k.Ensure(ctx, group, worker, describe(k, group, worker)); err != nil {
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
			return false, fmt.Errorf("creating a worker for %s: %w", group.Name, err)
		}
	}
	return false, nil
}

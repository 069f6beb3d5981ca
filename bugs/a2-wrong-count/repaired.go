package a2

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// byOrdinal gives each worker a number, from which its name is derived.
//
// RIGHT: the controller does not count workers. The names alone decide which workers are
// missing and which are surplus, so a lagging cache does no harm. (kuberay waits until its
// own writes are in the cache, but after a lost response it cannot know which write to wait
// for.)
func byOrdinal(ctx context.Context, k child.Keeper, group *Group, workers []Worker) (bool, error) {
	steady := true
	for i := range group.Spec.Replicas {
		worker := &Worker{}
		worker.Namespace, worker.Name = group.Namespace, fmt.Sprintf("%s-%d", group.Name, i)
		there, err := k.Ensure(ctx, group, worker, describe(k, group, worker))
		if err != nil {
			return false, err
		}
		steady = steady && there
	}
	for _, worker := range workers {
		ordinal, err := strconv.Atoi(strings.TrimPrefix(worker.Name, group.Name+"-"))
		if err == nil && ordinal < group.Spec.Replicas {
			continue
		}
		if current, err := k.Current(ctx, group); err != nil || !current {
			return false, err
		}
		if _, err := k.Remove(ctx, &worker, child.OwnedBy(group)); err != nil {
			return false, err
		}
	}
	return steady, nil
}

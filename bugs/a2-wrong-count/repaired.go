package a2

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// byOrdinal gives each worker a number, and with it a name.
//
// RIGHT: it does not count. Which workers are too few or too many follows from their
// names alone, so it does no harm if the cache knows of some of them only later.
// (kuberay waits until the cache knows what was done; but after an answer that was
// lost it cannot know what to wait for.)
func byOrdinal(ctx context.Context, k keep.Keeper, group *Group, workers []Worker) (bool, error) {
	steady := true
	for i := range group.Spec.Replicas {
		worker := &Worker{}
		worker.Namespace, worker.Name = group.Namespace, fmt.Sprintf("%s-%d", group.Name, i)
		there, err := k.Child(ctx, group, worker, describe(k, group, worker))
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
		if err := k.Remove(ctx, &worker); err != nil {
			return false, err
		}
	}
	return steady, nil
}

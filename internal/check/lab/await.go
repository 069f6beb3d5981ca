package lab

import (
	"context"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// await waits for the conditions of a step. The conditions may depend on something, such as
// watch events, that the fault holds back until the cluster is at rest. While the fault holds
// anything back, await gives up as soon as everything else is at rest. The state is
// compared later, after the fault has released what it holds back.
func (r *run) await(ctx context.Context, step *scenario.Step) error {
	if r.lesson == nil || r.injection == nil {
		cluster := r.cluster()
		return r.meanwhile(ctx, func(ctx context.Context) error { return step.Await(ctx, cluster) })
	}
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	done, began := make(chan error, 1), time.Now()
	go func() { done <- step.Await(waiting, r.cluster()) }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(r.window):
		}
		if !r.injection.Holds() {
			if _, err := r.endPodsAtRest(waiting, began); err != nil {
				return <-done
			}
			continue
		}
		rested, err := r.rest(waiting, r.timeout())
		switch {
		case rested:
			giveUp()
			return nil
		case err != nil: // the next wait for rest reports err as well
			giveUp()
			return <-done
		}
	}
}

package lab

import (
	"context"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// await waits for what the step waits for. That may need what the fault holds
// back until the rest of this step: then it is given up when all else is at rest,
// and what comes of it is compared after the rest.
func (r *run) await(ctx context.Context, step *scenario.Step) error {
	if r.lesson == nil || r.knock == nil {
		return step.Await(ctx, r.cluster())
	}
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	done := make(chan error, 1)
	go func() { done <- step.Await(waiting, r.cluster()) }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(r.window):
		}
		if !r.knock.keeping() {
			continue
		}
		rested, err := r.rest(waiting, r.timeout())
		switch {
		case rested:
			giveUp()
			return nil
		case err != nil: // the rest after this says so, too
			giveUp()
			return <-done
		}
	}
}

// keeping says whether something is held back now.
func (k *knock) keeping() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held != ""
}

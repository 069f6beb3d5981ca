package controlplane

import (
	"context"
	"errors"
	"sync"
	"time"
)

// stopTimeout limits the wait for components that were asked to stop. Some of
// upstream's components wait a minute for open connections; nothing is lost if
// they are left behind.
const stopTimeout = 300 * time.Millisecond

// tasks runs the components. When the first component fails, ctx ends for all
// components, with that error as its cause.
type tasks struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

var errStopped = errors.New("stopped")

func newTasks(parent context.Context) *tasks {
	ctx, cancel := context.WithCancelCause(parent)
	return &tasks{ctx: ctx, cancel: cancel}
}

func (t *tasks) run(f func(context.Context) error) {
	t.wg.Go(func() {
		if err := f(t.ctx); err != nil {
			t.cancel(err)
		}
	})
}

// stop ends all tasks, waits a short time for them, and returns the error of
// the task that failed first, if any.
func (t *tasks) stop() error {
	t.cancel(errStopped)
	done := make(chan struct{})
	go func() { t.wg.Wait(); close(done) }()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	if err := context.Cause(t.ctx); !errors.Is(err, errStopped) {
		return err
	}
	return nil
}

package cli

import (
	"context"
	"errors"
	"os"
	"time"
)

// The kernel can notify a child only about the end of the thread that started
// it, and only on Linux. Polling the parent's process ID works everywhere.
const parentPoll = 100 * time.Millisecond

var errParentDied = errors.New("the parent process ended")

// parent is the ID of the parent process, and is read as early as possible. If the original
// parent ends before this read, another process has already become the parent, and Koboshi
// does not notice the end.
var parent = os.Getppid()

// untilParentDies cancels the context when another process becomes the parent.
func untilParentDies(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(parentPoll)
		defer tick.Stop()
		for os.Getppid() == parent {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
		cancel(errParentDied)
	}()
	return ctx
}

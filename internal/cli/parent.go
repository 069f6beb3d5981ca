package cli

import (
	"context"
	"errors"
	"os"
	"time"
)

// The kernel can signal a child only about the thread that started it, and
// only on Linux; asking who the parent is works everywhere.
const parentPoll = 100 * time.Millisecond

var errParentDied = errors.New("the parent process ended")

// parent is read as early as can be: if it has ended before, another process has
// its place already, and its end is never noticed.
var parent = os.Getppid()

// untilParentDies ends the context when another process becomes the parent.
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

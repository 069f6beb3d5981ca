package k1

import (
	"context"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// whileLeading gives the controllers the context of the leadership. whileLeading waits until the
// controllers have stopped, and only then tries to acquire the lease again.
func whileLeading(ctx context.Context, lock resourcelock.Interface, work func(context.Context) error) error {
	for ctx.Err() == nil {
		if err := lead(ctx, lock, work); err != nil {
			return err
		}
	}
	return nil
}

// lead waits for the lease, works while it is held, and returns when it is lost or when
// the process should end.
func lead(process context.Context, lock resourcelock.Interface, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(process)
	defer cancel()
	stopped := make(chan error, 1)
	elector, err := newElector(lock, leaderelection.LeaderCallbacks{
		OnStartedLeading: func(leading context.Context) {
			stopped <- work(leading)
			cancel() // the work has ended, so stop leading
		},
		OnStoppedLeading: func() {},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if process.Err() != nil {
		return nil // do not wait: this instance may never have led
	}
	return <-stopped
}

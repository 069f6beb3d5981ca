package k1

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// onceLeading has the bug of kyverno/kyverno#14984 (reported earlier as #5984). When onceLeading
// acquires the lease, it starts the controllers with the context of the process and not with the
// context of the leadership. onceLeading only logs the loss of the lease.
func onceLeading(ctx context.Context, lock resourcelock.Interface, work func(context.Context) error) error {
	log := ctrl.LoggerFrom(ctx)
	failed := make(chan error, 1)
	var start sync.Once
	elector, err := newElector(lock, leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) {
			start.Do(func() {
				go func() { failed <- work(ctx) }()
			})
		},
		OnStoppedLeading: func() { log.Info("leadership lost") },
	})
	if err != nil {
		return err
	}
	go func() {
		for ctx.Err() == nil {
			elector.Run(ctx) // until the lease is lost; then it tries to acquire it again
		}
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

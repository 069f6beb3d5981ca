package k2

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The durations of the lease are a fifth of the usual values.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 400 * time.Millisecond
)

var errLost = errors.New("the lease is lost")

// whileItLives leads as long as it renews the lease. If the leader stops renewing the
// lease, for example because it was killed, another process takes over when the lease
// expires.
func (l *lock) whileItLives(process context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(process)
	defer cancel()
	stopped := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: l.lease, Client: l.leases, LockConfig: resourcelock.ResourceLockConfig{Identity: l.thisOne},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Name: "k2",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				stopped <- work(leading)
				cancel() // the work has ended, so stop leading
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if process.Err() != nil {
		return nil // do not wait: this instance may never have led
	}
	return errors.Join(<-stopped, errLost) // the process ends, and a new one tries to lead
}

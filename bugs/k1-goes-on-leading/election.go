package k1

import (
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The durations of the lease are a fifth of the usual values.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 400 * time.Millisecond
)

func newLock(cfg *rest.Config) (resourcelock.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = renewDeadline / 2 // leaves time for another request if one hangs
	leases, err := coordinationv1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client for leases: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "bugs-k1"},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, nil
}

func newElector(lock resourcelock.Interface, callbacks leaderelection.LeaderCallbacks) (*leaderelection.LeaderElector, error) {
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks:       callbacks,
		Name:            "k1",
	})
	if err != nil {
		return nil, fmt.Errorf("creating an elector: %w", err)
	}
	return e, nil
}

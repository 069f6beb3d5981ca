package k2

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// forLife has the bug of operator-framework/operator-sdk#2797 and #3462, and of
// operators that use that code (pravega/pravega-operator#579). The process that created
// the lock leads until the lock is deleted. In the real case, the lock is deleted together
// with the leader's Pod; here, it is deleted when the process exits normally. A killed
// process leaves the lock behind, as does a Pod on a node that is down, and nothing checks
// whether the leader is still alive.
func (l *lock) forLife(ctx context.Context, work func(context.Context) error) error {
	leases := l.leases.Leases(l.lease.Namespace)
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		made := &coordinationv1.Lease{ObjectMeta: l.lease, Spec: coordinationv1.LeaseSpec{HolderIdentity: &l.thisOne}}
		_, err := leases.Create(ctx, made, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return false, nil // another process leads, so wait
		}
		return err == nil, err
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the process was asked to end, and has never led
	}
	if err != nil {
		return fmt.Errorf("becoming the leader: %w", err)
	}
	err = work(ctx)
	return errors.Join(err, leases.Delete(context.WithoutCancel(ctx), l.lease.Name, metav1.DeleteOptions{}))
}

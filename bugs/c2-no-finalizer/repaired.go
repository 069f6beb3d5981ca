package c2

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

const finalizer = "bugs.koboshi.dev/children"

// holdAndRelease puts a finalizer on a cluster before anything is made for it, and
// takes it off once all of that is gone.
//
// RIGHT: as long as there is something to delete there is a cluster that says so,
// whoever was down meanwhile.
func holdAndRelease(ctx context.Context, k keep.Keeper, cluster *Cluster) (bool, error) {
	if cluster.DeletionTimestamp.IsZero() {
		if !controllerutil.AddFinalizer(cluster, finalizer) {
			return true, nil
		}
		err := k.Update(ctx, cluster)
		return err == nil, client.IgnoreNotFound(err)
	}
	if !controllerutil.ContainsFinalizer(cluster, finalizer) {
		return false, nil
	}
	config, secret := childrenOf(client.ObjectKeyFromObject(cluster))
	for _, child := range []client.Object{config, secret} {
		if gone, err := k.Gone(ctx, child); err != nil || !gone {
			return false, err
		}
	}
	controllerutil.RemoveFinalizer(cluster, finalizer)
	return false, client.IgnoreNotFound(k.Update(ctx, cluster))
}

// forget has nothing to do: a cluster that is not there has nothing left.
func forget(context.Context, keep.Keeper, client.ObjectKey) error { return nil }

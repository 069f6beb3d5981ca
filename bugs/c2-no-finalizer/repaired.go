package c2

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

const finalizer = "bugs.koboshi.dev/children"

// holdAndRelease adds a finalizer to a cluster before anything is created for it, and
// removes the finalizer once all of the cluster's children are gone.
//
// RIGHT: the cluster exists as long as there is something to delete, even if the process
// was down in the meantime.
func holdAndRelease(ctx context.Context, k child.Keeper, cluster *Cluster) (bool, error) {
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
	for _, o := range []client.Object{config, secret} {
		if gone, err := k.Remove(ctx, o, byName); err != nil || !gone {
			return false, err
		}
	}
	controllerutil.RemoveFinalizer(cluster, finalizer)
	return false, client.IgnoreNotFound(k.Update(ctx, cluster))
}

// byName accepts every object, because the name alone decides whether an object belongs
// to the cluster.
func byName(client.Object) bool { return true }

// forget does nothing, because a cluster that no longer exists has no children left.
func forget(context.Context, child.Keeper, client.ObjectKey) error { return nil }

package c2

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// justBegin does not prepare the cluster for its deletion.
func justBegin(_ context.Context, _ child.Keeper, cluster *Cluster) (bool, error) {
	return cluster.DeletionTimestamp.IsZero(), nil
}

// deleteAfter deletes the children of a cluster that no longer exists.
//
// WRONG: the deletion of a cluster causes only one event. If the process is down when a
// cluster is deleted, or dies before both children are deleted, nothing ever deletes them.
// The bug is taken from zalando/postgres-operator#941 and #2678.
func deleteAfter(ctx context.Context, k child.Keeper, key client.ObjectKey) error {
	config, secret := childrenOf(key)
	for _, o := range []client.Object{config, secret} {
		if err := client.IgnoreNotFound(k.Delete(ctx, o)); err != nil {
			return err
		}
	}
	return nil
}

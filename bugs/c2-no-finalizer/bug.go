package c2

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// justBegin has nothing to do before.
func justBegin(_ context.Context, _ keep.Keeper, cluster *Cluster) (bool, error) {
	return cluster.DeletionTimestamp.IsZero(), nil
}

// deleteAfter deletes the children of a cluster that is not there any more.
//
// WRONG: that a cluster was deleted is told once, to those who are there. If it is
// down then, or dies before both are deleted, nobody ever asks for them again. Taken
// from zalando/postgres-operator#941 and #2678.
func deleteAfter(ctx context.Context, k keep.Keeper, key client.ObjectKey) error {
	config, secret := childrenOf(key)
	for _, child := range []client.Object{config, secret} {
		if err := client.IgnoreNotFound(k.Delete(ctx, child)); err != nil {
			return err
		}
	}
	return nil
}

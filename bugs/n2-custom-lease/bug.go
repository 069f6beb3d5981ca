package n2

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// bothOrNone creates both leases if the first one is missing.
//
// WRONG: if the process dies after creating the first lease, it never creates the second
// one, because the first exists. The bug is taken from
// percona/percona-xtradb-cluster-operator#1043, as is the bug of class B1.
func bothOrNone(ctx context.Context, k child.Keeper, tenancy *Tenancy) error {
	var first Lease
	err := k.Get(ctx, client.ObjectKey{Namespace: tenancy.Namespace, Name: tenancy.Name + "-flat"}, &first)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil && first.Spec.Tenant == tenancy.Spec.Tenant {
		return nil
	}
	if err := lease(ctx, k, tenancy, "flat"); err != nil {
		return err
	}
	return lease(ctx, k, tenancy, "cellar")
}

package b1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// bothOrNone creates both secrets if the first one is missing.
//
// WRONG: if the process dies after creating the first secret, or the second one cannot be
// created at that moment, the controller never creates the second one, because the first
// exists. The bug is taken from percona/percona-xtradb-cluster-operator#1043 (K8SPXC-896)
// and percona/percona-server-mongodb-operator#797.
func bothOrNone(ctx context.Context, k child.Keeper, db *Database) (bool, error) {
	var first corev1.Secret
	err := k.Get(ctx, client.ObjectKey{Namespace: db.Namespace, Name: db.Name + "-ssl"}, &first)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	if err == nil && string(first.Data["tls.crt"]) == "certificate of "+db.Spec.Host+"-ssl" {
		return true, nil
	}
	if there, err := secret(ctx, k, db, "-ssl"); err != nil || !there {
		return false, err
	}
	return secret(ctx, k, db, "-ssl-internal")
}

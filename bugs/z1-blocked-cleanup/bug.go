package z1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ensurePassword makes the Secret before the cleanup, if it is gone.
//
// WRONG: if the namespace is deleted, the Secret is deleted first, and the server refuses to create
// another one in this namespace. So the finalizer is never removed, and the namespace stays. In
// banzaicloud/koperator#414, the credentials could not be created either; in
// rabbitmq/messaging-topology-operator#277, the cleanup also needed a Secret of the namespace.
func ensurePassword(ctx context.Context, r *reconciler, account *Account) (bool, error) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name + "-password"}}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(s), s)
	if !apierrors.IsNotFound(err) {
		return err == nil, err
	}
	s.Data = map[string][]byte{"user": []byte(account.Spec.User)}
	r.Own(account, s)
	return true, r.Create(ctx, s)
}

package g1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// byReference has the bug of crossplane/crossplane#895. The installed object has the Stack
// as its owner, but an owner reference has no namespace. The garbage collector looks for
// the Stack in the namespace of the object, does not find it, and deletes the object, which
// the controller then creates again. (In a real cluster, the object may be deleted only
// after the garbage collector is restarted.)
type byReference struct{ *reconciler }

// Reconcile installs a Stack, and leaves the cleanup to the garbage collector.
func (r *byReference) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s Stack
	if err := r.Live.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.install(ctx, &s, func(o *corev1.ConfigMap) {
		owner := metav1.NewControllerRef(&s, object.Version.WithKind("Stack"))
		o.OwnerReferences = []metav1.OwnerReference{*owner}
	})
}

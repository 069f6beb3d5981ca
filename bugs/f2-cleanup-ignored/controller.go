// Package f2 is class F2: the finalizer is taken off although the cleanup did not
// succeed.
package f2

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is what a person wants.
type Spec struct {
	Manifest string `json:"manifest,omitempty"`
}

// Status is what there is.
type Status struct {
	Deployed bool `json:"deployed,omitempty"`
}

// Release is a chart that is installed. What it installs has no owner, because it
// could be in any namespace.
type Release = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/f2"

type reconciler struct {
	client.Client
	live client.Reader
	// uninstall deletes what was installed, and says whether it is gone.
	uninstall func(ctx context.Context, rel *Release) (gone bool, err error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Release")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	r.uninstall = r.asFarAsItGoes
	if repaired {
		r.uninstall = r.untilItIsGone
	}
	return ctrl.NewControllerManagedBy(mgr).Named("f2").For(&Release{}).Watches(&corev1.ConfigMap{}, child.ToOwner()).Complete(r)
}

// Reconcile installs a Release, or uninstalls it when it is to go.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rel Release
	if err := r.live.Get(ctx, req.NamespacedName, &rel); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !rel.DeletionTimestamp.IsZero() {
		return r.finish(ctx, &rel)
	}
	if controllerutil.AddFinalizer(&rel, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &rel)
	}
	o := installed(&rel)
	err := child.Ensure(ctx, r.Client, o, func() error {
		o.Data = map[string]string{"manifest": rel.Spec.Manifest}
		child.Mark(o, &rel)
		return nil
	})
	if err != nil || rel.Status.Deployed {
		return ctrl.Result{}, err
	}
	rel.Status.Deployed = true
	return ctrl.Result{}, r.Status().Update(ctx, &rel)
}

func (r *reconciler) finish(ctx context.Context, rel *Release) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(rel, finalizer) {
		return ctrl.Result{}, nil
	}
	gone, err := r.uninstall(ctx, rel)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !gone {
		return ctrl.Result{RequeueAfter: child.Again}, nil
	}
	controllerutil.RemoveFinalizer(rel, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, rel))
}

func installed(rel *Release) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rel.Namespace, Name: rel.Name + "-installed"}}
}

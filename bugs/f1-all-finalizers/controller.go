// Package f1 has the bug of class F1: together with its own finalizer, the controller
// removes the finalizers of other controllers.
package f1

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

// Spec is the desired state.
type Spec struct {
	Command string `json:"command,omitempty"`
}

// Status is the observed state.
type Status struct {
	Phase string `json:"phase,omitempty"`
}

// BatchJob is a command that is queued.
type BatchJob = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/f1"

type reconciler struct {
	child.Keeper
	// release removes the finalizer.
	release func(ctx context.Context, j *BatchJob) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("BatchJob")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	r.release = r.clearFinalizers
	if repaired {
		r.release = r.removeFinalizer
	}
	return ctrl.NewControllerManagedBy(mgr).Named("f1").For(&BatchJob{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile queues the command of a BatchJob, or removes it from the queue when the job
// is being deleted.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var j BatchJob
	if err := r.Live.Get(ctx, req.NamespacedName, &j); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !j.DeletionTimestamp.IsZero() {
		return r.finish(ctx, &j)
	}
	if controllerutil.AddFinalizer(&j, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &j)
	}
	entry := queued(&j)
	there, err := r.Ensure(ctx, &j, entry, func() {
		entry.Data = map[string]string{"command": j.Spec.Command}
		r.Own(&j, entry)
	})
	if err != nil || !there || j.Status.Phase == "Queued" {
		return ctrl.Result{}, err
	}
	j.Status.Phase = "Queued"
	return ctrl.Result{}, r.Status().Update(ctx, &j)
}

func (r *reconciler) finish(ctx context.Context, j *BatchJob) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(j, finalizer) {
		return ctrl.Result{}, nil
	}
	gone, err := r.Remove(ctx, queued(j), child.OwnedBy(j))
	if err != nil || !gone {
		return ctrl.Result{}, err // the deletion will cause an event
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.release(ctx, j))
}

func queued(j *BatchJob) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Name + "-queued"}}
}

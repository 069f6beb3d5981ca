// Package f1 is class F1: the controller takes off the finalizers of others with
// its own.
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

// Spec is what a person wants.
type Spec struct {
	Command string `json:"command,omitempty"`
}

// Status is what there is.
type Status struct {
	Phase string `json:"phase,omitempty"`
}

// BatchJob is a command that is queued.
type BatchJob = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/f1"

type reconciler struct {
	client.Client
	live client.Reader
	// release takes the finalizer off.
	release func(ctx context.Context, j *BatchJob) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("BatchJob")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	r.release = r.clearFinalizers
	if repaired {
		r.release = r.removeFinalizer
	}
	return ctrl.NewControllerManagedBy(mgr).Named("f1").For(&BatchJob{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile queues the command of a BatchJob, or takes it out of the queue when
// the job is to go.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var j BatchJob
	if err := r.live.Get(ctx, req.NamespacedName, &j); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !j.DeletionTimestamp.IsZero() {
		return r.finish(ctx, &j)
	}
	if controllerutil.AddFinalizer(&j, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &j)
	}
	entry := queued(&j)
	err := child.Ensure(ctx, r.Client, entry, func() error {
		entry.Data = map[string]string{"command": j.Spec.Command}
		return controllerutil.SetControllerReference(&j, entry, r.Scheme())
	})
	if err != nil || j.Status.Phase == "Queued" {
		return ctrl.Result{}, err
	}
	j.Status.Phase = "Queued"
	return ctrl.Result{}, r.Status().Update(ctx, &j)
}

func (r *reconciler) finish(ctx context.Context, j *BatchJob) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(j, finalizer) {
		return ctrl.Result{}, nil
	}
	gone, err := child.Remove(ctx, r.Client, r.live, queued(j), child.OwnedBy(j.UID))
	if err != nil {
		return ctrl.Result{}, err
	}
	if !gone {
		return ctrl.Result{RequeueAfter: child.Again}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.release(ctx, j))
}

func queued(j *BatchJob) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Name + "-queued"}}
}

// Package q1 has a correct controller that makes backups. For each Backup, it creates a
// claim and a Job once, and records this in the status. If a user deletes the Job, the
// controller does not start the backup again.
//
// A checker that expects every object to be restored would blame this controller.
package q1

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Size string `json:"size"`
}

// Status is the observed state.
type Status struct {
	// Started reports whether the claim and the Job were created.
	Started bool `json:"started,omitempty"`
}

// Backup is the kind that is reconciled.
type Backup = object.Object[Spec, Status]

// reconciler reconciles backups.
type reconciler struct {
	child.Keeper
}

// Setup adds the controller to a manager. The controller has no bug, so there is nothing to
// repair.
func Setup(mgr ctrl.Manager, _ bool) error {
	object.Register[Spec, Status]("Backup")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	return ctrl.NewControllerManagedBy(mgr).Named("q1").For(&Backup{}).
		Owns(&corev1.PersistentVolumeClaim{}).Owns(&batchv1.Job{}).Complete(r)
}

// Reconcile starts a backup that has not started yet.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var backup Backup
	if err := r.Live.Get(ctx, req.NamespacedName, &backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !backup.DeletionTimestamp.IsZero() || backup.Status.Started {
		return ctrl.Result{}, nil
	}
	claim, job := r.claim(&backup), r.job(&backup)
	for _, o := range []client.Object{claim, job} {
		there, err := r.Ensure(ctx, &backup, o, func() { r.Own(&backup, o) })
		if err != nil || !there {
			return ctrl.Result{}, err
		}
	}
	backup.Status.Started = true
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &backup))
}

func (r *reconciler) claim(backup *Backup) client.Object {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = backup.Namespace, backup.Name
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(backup.Spec.Size)}
	return claim
}

func (r *reconciler) job(backup *Backup) client.Object {
	job := &batchv1.Job{}
	job.Namespace, job.Name = backup.Namespace, backup.Name
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "backup", Image: "backup:1"}},
	}
	return job
}

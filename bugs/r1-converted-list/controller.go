// Package r1 has a correct controller that reads its child, a HorizontalPodAutoscaler, as
// autoscaling/v1. The API server stores the child as autoscaling/v2, which has a list of
// metrics in place of the target that every child of this controller has in v1.
//
// If a checker shows the controller a list of objects in the version in which they are stored, the
// controller dereferences a nil pointer. No API server shows such a list.
package r1

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	// Load is the target for the load of the processors, in percent.
	Load int32 `json:"load,omitempty"`
}

// Status is the observed state.
type Status struct {
	Load int32 `json:"load,omitempty"`
}

// Poster is an application that is scaled.
type Poster = object.Object[Spec, Status]

type reconciler struct{ child.Keeper }

// Setup adds the controller to a manager. The controller has no bug, so there is nothing to
// repair.
func Setup(mgr ctrl.Manager, _ bool) error {
	object.Register[Spec, Status]("Poster")
	r := &reconciler{child.NewKeeper(mgr)}
	return ctrl.NewControllerManagedBy(mgr).Named("r1").For(&Poster{}).Owns(&autoscalingv1.HorizontalPodAutoscaler{}).Complete(r)
}

// Reconcile keeps the target of the child, and records it in the status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var p Poster
	if err := r.Live.Get(ctx, req.NamespacedName, &p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	hpa := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	there, err := r.Ensure(ctx, &p, hpa, func() {
		if hpa.UID == "" {
			hpa.Spec = autoscalingv1.HorizontalPodAutoscalerSpec{TargetCPUUtilizationPercentage: new(int32)}
		}
		hpa.Spec.ScaleTargetRef = autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: p.Name}
		hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = new(int32(1)), 3
		*hpa.Spec.TargetCPUUtilizationPercentage = p.Spec.Load // never nil, because Reconcile sets it
		r.Own(&p, hpa)
	})
	if err != nil || !there || p.Status.Load == p.Spec.Load {
		return ctrl.Result{}, err
	}
	p.Status.Load = p.Spec.Load
	return ctrl.Result{}, r.Status().Update(ctx, &p)
}

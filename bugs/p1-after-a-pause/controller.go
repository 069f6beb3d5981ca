// Package p1 has the bug of class P1: the controller reports that it is progressing, waits
// for three seconds, and only then does its work. The bug is in this work.
//
// A checker that mistakes the pause for the end of the work compares states that are not final, and
// injects no faults into the work after the pause.
package p1

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// pause is the time for which a Rollout is progressing.
const pause = 3 * time.Second

// Spec is the desired state.
type Spec struct {
	Image string `json:"image"`
}

// Status is the observed state.
type Status struct {
	// Phase is Progressing or Ready, Image is the image to which Phase refers, and Since is the
	// time at which the Rollout began to progress.
	Phase string            `json:"phase,omitempty"`
	Image string            `json:"image,omitempty"`
	Since *metav1.MicroTime `json:"since,omitempty"`
}

// Rollout is the kind that is reconciled.
type Rollout = object.Object[Spec, Status]

// reconciler reconciles Rollouts.
type reconciler struct {
	child.Keeper
	// finish does the work after the pause.
	finish func(context.Context, *Rollout) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Rollout")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	r.finish = r.unlessTheFirstExists
	if repaired {
		r.finish = r.both
	}
	return ctrl.NewControllerManagedBy(mgr).Named("p1").For(&Rollout{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile waits for the pause, and then creates both objects of a Rollout.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var o Rollout
	if err := r.Live.Get(ctx, req.NamespacedName, &o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !o.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	ready := o.Status.Phase == "Ready" && o.Status.Image == o.Spec.Image
	if !ready {
		if left, err := r.progress(ctx, &o); left > 0 || err != nil {
			return ctrl.Result{RequeueAfter: left}, err
		}
	}
	done, err := r.finish(ctx, &o)
	if err != nil || !done || ready {
		return ctrl.Result{}, err
	}
	o.Status.Phase = "Ready"
	return ctrl.Result{}, r.Status().Update(ctx, &o)
}

// progress reports that a Rollout is progressing, and returns the time that is left of the
// pause.
func (r *reconciler) progress(ctx context.Context, o *Rollout) (time.Duration, error) {
	if o.Status.Since == nil || o.Status.Image != o.Spec.Image {
		o.Status = Status{Phase: "Progressing", Image: o.Spec.Image, Since: new(metav1.NowMicro())}
		if err := r.Status().Update(ctx, o); err != nil {
			return 0, err
		}
	}
	return pause - time.Since(o.Status.Since.Time), nil
}

// ensure creates or repairs one of the two objects of a Rollout.
func (r *reconciler) ensure(ctx context.Context, o *Rollout, suffix string) (bool, error) {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name + suffix}}
	return r.Ensure(ctx, o, made, func() {
		made.Data = map[string]string{"image": o.Spec.Image}
		r.Own(o, made)
	})
}

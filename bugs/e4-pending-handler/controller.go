// Package e4 has the bug of class E4: a pending task keeps the controller busy forever. The
// controller runs tasks, as some controller frameworks do. The controller records in the
// resource which tasks are done, and wakes itself by writing to the resource.
package e4

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	// Address names the ConfigMap with the address.
	Address string `json:"address,omitempty"`
}

// Status is the observed state.
type Status struct {
	Delivered string            `json:"delivered,omitempty"`
	Tasks     map[string]string `json:"tasks,omitempty"`
}

// Delivery is something that is delivered as soon as its address exists.
type Delivery = object.Object[Spec, Status]

const (
	finalizer = "bugs.koboshi.dev/e4"
	touched   = "bugs.koboshi.dev/touched"

	deliver = "deliver"
	collect = "collect"
	pending = "pending"
	done    = "done"
)

type reconciler struct {
	client.Client
	live client.Reader
	// holds reports whether the finalizer of a deleted resource stays while this task is
	// pending.
	holds func(task string) bool
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Delivery")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader(), holds: every}
	if repaired {
		r.holds = thoseOfDeletion
	}
	return ctrl.NewControllerManagedBy(mgr).Named("e4").For(&Delivery{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.waiting)).
		Complete(r)
}

// waiting returns all deliveries in the namespace of a changed address.
func (r *reconciler) waiting(ctx context.Context, address client.Object) (all []reconcile.Request) {
	var list object.List[Spec, Status]
	if err := r.List(ctx, &list, client.InNamespace(address.GetNamespace())); err != nil {
		return nil
	}
	for i := range list.Items {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return all
}

// Reconcile runs the task that is due.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var d Delivery
	if err := r.live.Get(ctx, req.NamespacedName, &d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !d.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finish(ctx, &d)
	}
	if controllerutil.AddFinalizer(&d, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &d)
	}
	var address corev1.ConfigMap
	err := r.live.Get(ctx, types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.Address}, &address)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, r.report(ctx, &d, deliver, pending, "")
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &d, deliver, done, address.Data["street"])
}

// finish takes the delivery back, and removes the finalizer when no task is left.
func (r *reconciler) finish(ctx context.Context, d *Delivery) error {
	if !controllerutil.ContainsFinalizer(d, finalizer) {
		return nil
	}
	if d.Status.Tasks[collect] != done {
		return r.report(ctx, d, collect, done, "")
	}
	for task, state := range d.Status.Tasks {
		if state != done && r.holds(task) {
			return r.touch(ctx, d)
		}
	}
	controllerutil.RemoveFinalizer(d, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, d))
}

// report records the state of a task, unless it is recorded already.
func (r *reconciler) report(ctx context.Context, d *Delivery, task, state, delivered string) error {
	if d.Status.Tasks[task] == state && d.Status.Delivered == delivered {
		return nil
	}
	if d.Status.Tasks == nil {
		d.Status.Tasks = map[string]string{}
	}
	d.Status.Tasks[task], d.Status.Delivered = state, delivered
	return client.IgnoreNotFound(r.Status().Update(ctx, d))
}

// touch changes the resource in order to cause an event.
func (r *reconciler) touch(ctx context.Context, d *Delivery) error {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[touched] = time.Now().Format(time.RFC3339Nano)
	return client.IgnoreNotFound(r.Update(ctx, d))
}

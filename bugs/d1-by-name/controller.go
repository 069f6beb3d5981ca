// Package d1 is class D1: after a restart the controller sees a resource that is
// about to go, as it was before one of the same name took its place, and deletes
// by name what belongs to the new one.
package d1

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
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
	Replicas int32 `json:"replicas,omitempty"`
}

// Status is what there is.
type Status struct {
	Phase string `json:"phase,omitempty"`
}

// Broker is a message broker that runs as a StatefulSet.
type Broker = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/d1"

type reconciler struct {
	client.Client
	// brokers is where a Broker is read from.
	brokers client.Reader
	// stop deletes the servers and says whether they are gone.
	stop func(ctx context.Context, b *Broker) (gone bool, err error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Broker")
	r := &reconciler{Client: mgr.GetClient()}
	if repaired {
		r.repair(mgr.GetAPIReader())
	} else {
		r.brokers, r.stop = r.Client, r.deleteByName
	}
	return ctrl.NewControllerManagedBy(mgr).Named("d1").For(&Broker{}).Owns(&appsv1.StatefulSet{}).Complete(r)
}

// Reconcile makes the servers of a Broker, or stops them when it is to go.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var b Broker
	if err := r.brokers.Get(ctx, req.NamespacedName, &b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return r.finish(ctx, &b)
	}
	if controllerutil.AddFinalizer(&b, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &b)
	}
	if err := r.ensureServers(ctx, &b); err != nil {
		return ctrl.Result{}, err
	}
	if b.Status.Phase == "Running" {
		return ctrl.Result{}, nil
	}
	b.Status.Phase = "Running"
	return ctrl.Result{}, r.Status().Update(ctx, &b)
}

func (r *reconciler) finish(ctx context.Context, b *Broker) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(b, finalizer) {
		return ctrl.Result{}, nil
	}
	gone, err := r.stop(ctx, b)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !gone {
		return ctrl.Result{RequeueAfter: child.Again}, nil
	}
	controllerutil.RemoveFinalizer(b, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, b))
}

func servers(b *Broker) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name + "-server"}}
}

// ensureServers sets only what the controller has an opinion on; the rest belongs
// to the defaults of the API server.
func (r *reconciler) ensureServers(ctx context.Context, b *Broker) error {
	set := servers(b)
	return child.Ensure(ctx, r.Client, set, func() error {
		labels := map[string]string{"broker": b.Name}
		set.Labels = labels
		set.Spec.Replicas = &b.Spec.Replicas
		set.Spec.ServiceName = b.Name
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		set.Spec.Template.Labels = labels
		if len(set.Spec.Template.Spec.Containers) != 1 {
			set.Spec.Template.Spec.Containers = []corev1.Container{{}}
		}
		set.Spec.Template.Spec.Containers[0].Name = "broker"
		set.Spec.Template.Spec.Containers[0].Image = "broker:1"
		return controllerutil.SetControllerReference(b, set, r.Scheme())
	})
}

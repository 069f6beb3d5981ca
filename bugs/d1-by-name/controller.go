// Package d1 has the bug of class D1: after a restart, the controller sees an earlier state
// in which a resource was being deleted. The controller deletes children by name, although
// they belong to a new resource of the same name.
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

// Spec is the desired state.
type Spec struct {
	Replicas int32 `json:"replicas,omitempty"`
}

// Status is the observed state.
type Status struct {
	Phase string `json:"phase,omitempty"`
}

// Broker is a message broker that runs as a StatefulSet.
type Broker = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/d1"

type reconciler struct {
	child.Keeper
	// brokers reads Brokers.
	brokers client.Reader
	// stop deletes the servers, and reports whether they are gone.
	stop func(ctx context.Context, b *Broker) (gone bool, err error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Broker")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	if repaired {
		r.repair()
	} else {
		r.brokers, r.stop = r.Client, r.deleteByName
	}
	return ctrl.NewControllerManagedBy(mgr).Named("d1").For(&Broker{}).Owns(&appsv1.StatefulSet{}).Complete(r)
}

// Reconcile creates the servers of a Broker, or stops them when it is being deleted.
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
	if there, err := r.ensureServers(ctx, &b); err != nil || !there || b.Status.Phase == "Running" {
		return ctrl.Result{}, err
	}
	b.Status.Phase = "Running"
	return ctrl.Result{}, r.Status().Update(ctx, &b)
}

func (r *reconciler) finish(ctx context.Context, b *Broker) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(b, finalizer) {
		return ctrl.Result{}, nil
	}
	gone, err := r.stop(ctx, b)
	if err != nil || !gone {
		return ctrl.Result{}, err // the deletion will cause an event
	}
	controllerutil.RemoveFinalizer(b, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, b))
}

func servers(b *Broker) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name + "-server"}}
}

// ensureServers sets only the fields that matter to the controller; the others keep
// the defaults of the API server.
func (r *reconciler) ensureServers(ctx context.Context, b *Broker) (bool, error) {
	set := servers(b)
	return r.Ensure(ctx, b, set, func() {
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
		r.Own(b, set)
	})
}

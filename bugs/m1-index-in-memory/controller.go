// Package m1 has the bug of class M1: the controller's memory does not match the existing
// objects.
package m1

import (
	"context"
	"slices"

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
	Namespaces []string `json:"namespaces,omitempty"`
	Value      string   `json:"value,omitempty"`
}

// Status is the observed state.
type Status struct {
	Namespaces []string `json:"namespaces,omitempty"`
}

// SharedSecret is a Secret that is copied to several namespaces.
type SharedSecret = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/m1"

// index keeps track of the namespaces that have copies.
type index interface {
	// created records that a copy is created in a namespace.
	created(s *SharedSecret, namespace string)
	// where returns the namespaces with copies.
	where(ctx context.Context, s *SharedSecret) ([]string, error)
}

type reconciler struct {
	child.Keeper
	index
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("SharedSecret")
	r := &reconciler{Keeper: child.NewKeeper(mgr), index: &memory{}}
	if repaired {
		r.index = cluster{mgr.GetAPIReader()}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("m1").For(&SharedSecret{}).Watches(&corev1.Secret{}, child.ToOwner()).Complete(r)
}

// Reconcile creates the copies of a SharedSecret, or deletes them when it is being
// deleted.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s SharedSecret
	if err := r.Live.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return r.finish(ctx, &s)
	}
	if controllerutil.AddFinalizer(&s, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &s)
	}
	complete := true
	for _, namespace := range s.Spec.Namespaces {
		there, err := r.ensureCopy(ctx, &s, namespace)
		if err != nil {
			return ctrl.Result{}, err
		}
		complete = complete && there
	}
	if !complete || slices.Equal(s.Status.Namespaces, s.Spec.Namespaces) {
		return ctrl.Result{}, nil
	}
	s.Status.Namespaces = s.Spec.Namespaces
	return ctrl.Result{}, r.Status().Update(ctx, &s)
}

func (r *reconciler) ensureCopy(ctx context.Context, s *SharedSecret, namespace string) (bool, error) {
	o := secret(s, namespace)
	return r.Ensure(ctx, s, o, func() {
		if o.ResourceVersion == "" {
			r.created(s, namespace)
		}
		o.Data = map[string][]byte{"value": []byte(s.Spec.Value)}
		child.Mark(o, s)
	})
}

// finish deletes all copies and removes the finalizer.
func (r *reconciler) finish(ctx context.Context, s *SharedSecret) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s, finalizer) {
		return ctrl.Result{}, nil
	}
	namespaces, err := r.where(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	all := true
	for _, namespace := range namespaces {
		gone, err := r.Remove(ctx, secret(s, namespace), child.MarkedBy(s))
		if err != nil {
			return ctrl.Result{}, err
		}
		all = all && gone
	}
	if !all {
		return ctrl.Result{}, nil // the deletion will cause an event
	}
	controllerutil.RemoveFinalizer(s, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, s))
}

func secret(s *SharedSecret, namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.Name}}
}

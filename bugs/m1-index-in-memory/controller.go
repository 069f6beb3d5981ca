// Package m1 is class M1: what the controller remembers and what is there are not
// the same.
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

// Spec is what a person wants.
type Spec struct {
	Namespaces []string `json:"namespaces,omitempty"`
	Value      string   `json:"value,omitempty"`
}

// Status is what there is.
type Status struct {
	Namespaces []string `json:"namespaces,omitempty"`
}

// SharedSecret is a Secret in some namespaces.
type SharedSecret = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/m1"

// index knows in which namespaces there are copies.
type index interface {
	// created is told of each copy that was made.
	created(s *SharedSecret, namespace string)
	// where are the namespaces with copies.
	where(ctx context.Context, s *SharedSecret) ([]string, error)
}

type reconciler struct {
	client.Client
	live client.Reader
	index
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("SharedSecret")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader(), index: &memory{}}
	if repaired {
		r.index = cluster{mgr.GetAPIReader()}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("m1").For(&SharedSecret{}).Watches(&corev1.Secret{}, child.ToOwner()).Complete(r)
}

// Reconcile makes the copies of a SharedSecret, or deletes them when it is to go.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s SharedSecret
	if err := r.live.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return r.finish(ctx, &s)
	}
	if controllerutil.AddFinalizer(&s, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &s)
	}
	for _, namespace := range s.Spec.Namespaces {
		if err := r.ensureCopy(ctx, &s, namespace); err != nil {
			return ctrl.Result{}, err
		}
	}
	if slices.Equal(s.Status.Namespaces, s.Spec.Namespaces) {
		return ctrl.Result{}, nil
	}
	s.Status.Namespaces = s.Spec.Namespaces
	return ctrl.Result{}, r.Status().Update(ctx, &s)
}

func (r *reconciler) ensureCopy(ctx context.Context, s *SharedSecret, namespace string) error {
	o := secret(s, namespace)
	err := child.Ensure(ctx, r.Client, o, func() error {
		if o.ResourceVersion == "" {
			r.created(s, namespace)
		}
		o.Data = map[string][]byte{"value": []byte(s.Spec.Value)}
		child.Mark(o, s)
		return nil
	})
	return err
}

// finish deletes all copies and takes the finalizer off.
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
		gone, err := child.Remove(ctx, r.Client, r.live, secret(s, namespace), child.MarkedBy(s))
		if err != nil {
			return ctrl.Result{}, err
		}
		all = all && gone
	}
	if !all {
		return ctrl.Result{RequeueAfter: child.Again}, nil
	}
	controllerutil.RemoveFinalizer(s, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, s))
}

func secret(s *SharedSecret, namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.Name}}
}

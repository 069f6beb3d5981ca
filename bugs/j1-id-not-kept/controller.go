// Package j1 has the bug of class J1: the controller creates an external resource, but
// loses the resource's ID before it is stored.
package j1

import (
	"context"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/cloud"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Size int `json:"size,omitempty"`
}

// Status is the observed state.
type Status struct {
	ID   string `json:"id,omitempty"`
	Size int    `json:"size,omitempty"`
}

// Volume is a volume in the cloud.
type Volume = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/j1"

// provider creates and deletes volumes.
type provider interface {
	// volume returns the volume of v, and creates it if necessary.
	volume(ctx context.Context, v *Volume) (cloud.Volume, error)
	// release deletes every volume of v.
	release(ctx context.Context, v *Volume) error
}

type reconciler struct {
	client.Client
	live client.Reader
	provider
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Volume")
	url := os.Getenv(cloud.Env)
	if url == "" {
		return fmt.Errorf("%s is not set; set it to the address of the cloud", cloud.Env)
	}
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	r.provider = byStatus{&cloud.Client{URL: url}}
	if repaired {
		r.provider = byName{&cloud.Client{URL: url}}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("j1").For(&Volume{}).Complete(r)
}

// Reconcile creates the volume of a Volume, or deletes it when the Volume is being
// deleted.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var v Volume
	if err := r.live.Get(ctx, req.NamespacedName, &v); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !v.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finish(ctx, &v)
	}
	if controllerutil.AddFinalizer(&v, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &v)
	}
	made, err := r.volume(ctx, &v)
	if err != nil {
		return ctrl.Result{}, err
	}
	want := Status{ID: made.ID, Size: made.Size}
	if v.Status == want {
		return ctrl.Result{}, nil
	}
	v.Status = want
	return ctrl.Result{}, r.Status().Update(ctx, &v)
}

func (r *reconciler) finish(ctx context.Context, v *Volume) error {
	if !controllerutil.ContainsFinalizer(v, finalizer) {
		return nil
	}
	if err := r.release(ctx, v); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(v, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, v))
}

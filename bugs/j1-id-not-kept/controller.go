// Package j1 is class J1: something is made outside the cluster, and what it is
// called is lost before it is written down.
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

// Spec is what a person wants.
type Spec struct {
	Size int `json:"size,omitempty"`
}

// Status is what there is.
type Status struct {
	ID   string `json:"id,omitempty"`
	Size int    `json:"size,omitempty"`
}

// Volume is a volume in the cloud.
type Volume = object.Object[Spec, Status]

const finalizer = "bugs.koboshi.dev/j1"

// provider makes volumes and deletes them.
type provider interface {
	// volume is the one volume of v, made if there is none.
	volume(ctx context.Context, v *Volume) (cloud.Volume, error)
	// release deletes all that there is of v.
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
		return fmt.Errorf("set %s to the address of the cloud", cloud.Env)
	}
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	r.provider = byStatus{&cloud.Client{URL: url}}
	if repaired {
		r.provider = byName{&cloud.Client{URL: url}}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("j1").For(&Volume{}).Complete(r)
}

// Reconcile makes the volume of a Volume, or releases it when the Volume is to go.
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

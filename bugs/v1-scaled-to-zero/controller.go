// Package v1 reconciles apps, each with a Deployment that has one replica for each unit of load. The
// load is measured, and kept in memory. Class V1: an update destroys something, and is revised at once.
package v1

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state. The load stands for what a metrics server would report.
type Spec struct {
	Load int32 `json:"load"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// App is the kind that is reconciled.
type App = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in what
// they do before the load was measured.
type reconciler struct {
	child.Keeper
	scale func(ctx context.Context, r *reconciler, app *App) (bool, error)

	mu       sync.Mutex
	measured map[types.UID]int32
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("App")
	r := &reconciler{Keeper: child.NewKeeper(mgr), scale: atOnce, measured: map[types.UID]int32{}}
	if repaired {
		r.scale = onceMeasured
	}
	return ctrl.NewControllerManagedBy(mgr).Named("v1").For(&App{}).Owns(&appsv1.Deployment{}).Complete(r)
}

// Reconcile scales the Deployment of an app, and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var app App
	if err := r.Live.Get(ctx, req.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	done, err := r.scale(ctx, r, &app)
	if err != nil || !done || app.Status.Generation == app.Generation {
		return ctrl.Result{}, err
	}
	app.Status.Generation = app.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &app))
}

// load returns the load that was measured last, or 0.
func (r *reconciler) load(app *App) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.measured[app.UID]
}

// measure measures the load.
func (r *reconciler) measure(app *App) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.measured[app.UID] = app.Spec.Load
}

// ensure creates or scales the Deployment of an app.
func (r *reconciler) ensure(ctx context.Context, app *App, replicas int32) (bool, error) {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = app.Namespace, app.Name
	return r.Ensure(ctx, app, d, func() {
		d.Spec.Replicas = &replicas
		if d.Spec.Selector == nil {
			labels := map[string]string{"app": app.Name}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template.Labels = labels
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app"}}
		}
		r.Own(app, d)
	})
}

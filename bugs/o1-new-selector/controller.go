// Package o1 reconciles apps, each with a Deployment. Its new version gives the Pods other labels. Class
// O1: an upgrade leads to writes that the API server refuses forever.
package o1

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Replicas int32 `json:"replicas"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// App is the kind that is reconciled.
type App = object.Object[Spec, Status]

// reconciler holds everything that all versions of the controller share; they differ in how they
// render a Deployment.
type reconciler struct {
	child.Keeper
	render func(app *App, d *appsv1.Deployment)
}

// Setup adds the new version of the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	if repaired {
		return setup(mgr, keeping)
	}
	return setup(mgr, relabelled)
}

// SetupOld adds the version from which users upgrade.
func SetupOld(mgr ctrl.Manager) error { return setup(mgr, old) }

func setup(mgr ctrl.Manager, render func(*App, *appsv1.Deployment)) error {
	object.Register[Spec, Status]("App")
	r := &reconciler{child.NewKeeper(mgr), render}
	return ctrl.NewControllerManagedBy(mgr).Named("o1").For(&App{}).Owns(&appsv1.Deployment{}).Complete(r)
}

// Reconcile creates or updates the Deployment of an app, and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var app App
	if err := r.Live.Get(ctx, req.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = app.Namespace, app.Name
	done, err := r.Ensure(ctx, &app, d, func() {
		d.Spec.Replicas = &app.Spec.Replicas
		r.render(&app, d)
		r.Own(&app, d)
	})
	if err != nil || !done || app.Status.Generation == app.Generation {
		return ctrl.Result{}, err
	}
	app.Status.Generation = app.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &app))
}

// old renders a Deployment as the old version does.
func old(app *App, d *appsv1.Deployment) { pods(d, map[string]string{"app": app.Name}) }

// pods sets the selector and the Pods of a Deployment.
func pods(d *appsv1.Deployment, labels map[string]string) {
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	if len(d.Spec.Template.Spec.Containers) == 0 { // the API server adds defaults
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app"}}
	}
}

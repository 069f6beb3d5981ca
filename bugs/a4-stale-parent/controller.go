// Package a4 reconciles applications and invocations. An invocation runs the current image
// of an application once. Class A4: the application is read from the cache, which still has
// the previous image.
package a4

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// settle is the time that an application is given to become ready, in case it was changed
// together with an invocation.
const settle = 50 * time.Millisecond

// AppSpec names the desired version of an application.
type AppSpec struct {
	Tag string `json:"tag"`
}

// AppStatus names the image of the desired version.
type AppStatus struct {
	Image      string `json:"image,omitempty"`
	Generation int64  `json:"generation,omitempty"`
}

// Spec names the application to run.
type Spec struct {
	App string `json:"app"`
}

// Status names the image that an invocation runs. The image is chosen only once.
type Status struct {
	Image string `json:"image,omitempty"`
}

// TaskSpec names the image to run.
type TaskSpec struct {
	Image string `json:"image"`
}

// TaskStatus is empty.
type TaskStatus struct{}

type (
	// App is the first of the two kinds that are reconciled.
	App = object.Object[AppSpec, AppStatus]
	// Invocation is the second kind that is reconciled.
	Invocation = object.Object[Spec, Status]
	// Task is the kind of an invocation's child.
	Task = object.Object[TaskSpec, TaskStatus]

	invocationList = object.List[Spec, Status]
)

// Setup adds both controllers to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[AppSpec, AppStatus]("App")
	object.Register[Spec, Status]("Invocation")
	object.Register[TaskSpec, TaskStatus]("Task")
	k := child.NewKeeper(mgr)
	apps := &appReconciler{Keeper: k}
	err := ctrl.NewControllerManagedBy(mgr).Named("a4-apps").
		For(&App{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(apps)
	if err != nil {
		return err
	}
	r := &reconciler{Keeper: k, image: cachedImage, seen: map[types.UID]time.Time{}}
	if repaired {
		r.image = freshImage
	}
	return ctrl.NewControllerManagedBy(mgr).Named("a4").
		For(&Invocation{}).
		Owns(&Task{}).
		Watches(&App{}, handler.EnqueueRequestsFromMapFunc(r.invocationsOf)).
		Complete(r)
}

// appReconciler determines the image of an application.
type appReconciler struct{ child.Keeper }

// Reconcile writes the image into the status.
func (r *appReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var app App
	if err := r.Get(ctx, req.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	want := AppStatus{Image: "registry.example/" + app.Name + ":" + app.Spec.Tag, Generation: app.Generation}
	if app.Status == want {
		return ctrl.Result{}, nil
	}
	app.Status = want
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &app))
}

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in how they determine the image. An unknown image is an empty string.
type reconciler struct {
	child.Keeper
	image func(ctx context.Context, k child.Keeper, key client.ObjectKey) (string, error)
	// seen holds the time at which this process first saw each invocation. The controller
	// has only one worker, so the map needs no lock.
	seen map[types.UID]time.Time
}

// Reconcile waits a little, chooses the image, writes it into the status and creates
// the task.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var invocation Invocation
	if err := r.Get(ctx, req.NamespacedName, &invocation); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if invocation.Status.Image == "" {
		return r.choose(ctx, &invocation)
	}
	task := &Task{}
	task.Namespace, task.Name = invocation.Namespace, invocation.Name
	_, err := r.Ensure(ctx, &invocation, task, func() {
		task.Spec.Image = invocation.Status.Image
		r.Own(&invocation, task)
	})
	return ctrl.Result{}, err
}

// choose records the image once the application has had time to become ready.
func (r *reconciler) choose(ctx context.Context, invocation *Invocation) (ctrl.Result, error) {
	if wait := r.left(invocation); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	image, err := r.image(ctx, r.Keeper, client.ObjectKey{Namespace: invocation.Namespace, Name: invocation.Spec.App})
	if err != nil || image == "" {
		return ctrl.Result{}, err
	}
	invocation.Status.Image = image
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, invocation))
}

// left returns the remaining time to wait for the application.
func (r *reconciler) left(invocation *Invocation) time.Duration {
	seen, known := r.seen[invocation.UID]
	if !known {
		seen = time.Now()
		r.seen[invocation.UID] = seen
	}
	return settle - time.Since(seen)
}

// invocationsOf returns the invocations of an application.
func (r *reconciler) invocationsOf(ctx context.Context, app client.Object) []reconcile.Request {
	var all invocationList
	if err := r.List(ctx, &all, client.InNamespace(app.GetNamespace())); err != nil {
		return nil // the cache cannot fail once it has started
	}
	var waiting []reconcile.Request
	for _, i := range all.Items {
		if i.Spec.App == app.GetName() {
			waiting = append(waiting, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&i)})
		}
	}
	return waiting
}

// Package c1 rolls an application out again when its configuration changes. The rollout
// carries a hash of the ConfigMap, which shows whether the configuration has changed. Class
// C1: the controller acts on a change only if it receives the event of that change.
package c1

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec names the ConfigMap of an application.
type Spec struct {
	Config string `json:"config"`
}

// Status is empty.
type Status struct{}

// RolloutSpec describes what is rolled out.
type RolloutSpec struct {
	App  string `json:"app"`
	Hash string `json:"hash"`
}

// RolloutStatus is empty.
type RolloutStatus struct{}

type (
	// App is the kind that is reconciled.
	App = object.Object[Spec, Status]
	// Rollout is the kind of an application's child.
	Rollout = object.Object[RolloutSpec, RolloutStatus]
	appList = object.List[Spec, Status]
)

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in when they update the hash.
type reconciler struct {
	child.Keeper
	// seen is called for each event that shows a change of a ConfigMap.
	seen func(old, new *corev1.ConfigMap)
	// due reports whether the hash of an existing rollout should be updated. The function
	// did is called once the hash is up to date.
	due func(config client.ObjectKey) bool
	did func(config client.ObjectKey)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("App")
	object.Register[RolloutSpec, RolloutStatus]("Rollout")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	if repaired {
		r.compare()
	} else {
		r.remember()
	}
	changes := handler.EnqueueRequestsFromMapFunc(r.appsOf)
	return ctrl.NewControllerManagedBy(mgr).Named("c1").
		For(&App{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&Rollout{}).
		Watches(&corev1.ConfigMap{}, changes, builder.WithPredicates(r.watcher())).
		Complete(r)
}

// Reconcile creates the rollout, and updates its hash if an update is due.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var app App
	if err := r.Get(ctx, req.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var config corev1.ConfigMap
	key := client.ObjectKey{Namespace: app.Namespace, Name: app.Spec.Config}
	if err := r.Get(ctx, key, &config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	rollout := &Rollout{}
	rollout.Namespace, rollout.Name = app.Namespace, app.Name
	there, err := r.Ensure(ctx, &app, rollout, func() {
		rollout.Spec.App = app.Name
		if rollout.UID == "" || r.due(key) {
			rollout.Spec.Hash = hash(config.Data)
		}
		r.Own(&app, rollout)
	})
	if err == nil && there {
		r.did(key)
	}
	return ctrl.Result{}, err
}

// appsOf returns the applications that use a ConfigMap.
func (r *reconciler) appsOf(ctx context.Context, config client.Object) []reconcile.Request {
	var all appList
	if err := r.List(ctx, &all, client.InNamespace(config.GetNamespace())); err != nil {
		return nil // the cache cannot fail once it has started
	}
	var use []reconcile.Request
	for _, app := range all.Items {
		if app.Spec.Config == config.GetName() {
			use = append(use, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&app)})
		}
	}
	return use
}

// watcher accepts all events, and passes each change of a ConfigMap to seen.
func (r *reconciler) watcher() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, isOld := e.ObjectOld.(*corev1.ConfigMap)
		now, isNow := e.ObjectNew.(*corev1.ConfigMap)
		if isOld && isNow {
			r.seen(old, now)
		}
		return true
	}}
}

func hash(data map[string]string) string {
	text, err := json.Marshal(data) // sorted by key
	if err != nil {
		panic(fmt.Sprintf("encoding a map of strings: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

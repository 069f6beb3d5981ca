// Package u1 reconciles databases with three members. A ConfigMap tells clients which member is the
// primary, and which members are replicas. Class U1: the state is wrong for a moment, between two
// writes, even without a fault.
package u1

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state. Primary is a, b or c.
type Spec struct {
	Primary string `json:"primary"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Database is the kind that is reconciled.
type Database = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in the
// number of their writes.
type reconciler struct {
	child.Keeper
	route func(ctx context.Context, r *reconciler, db *Database) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Database")
	r := &reconciler{Keeper: child.NewKeeper(mgr), route: oneByOne}
	if repaired {
		r.route = together
	}
	return ctrl.NewControllerManagedBy(mgr).Named("u1").For(&Database{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile writes the roles of the members, and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var db Database
	if err := r.Live.Get(ctx, req.NamespacedName, &db); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !db.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	done, err := r.route(ctx, r, &db)
	if err != nil || !done || db.Status.Generation == db.Generation {
		return ctrl.Result{}, err
	}
	db.Status.Generation = db.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &db))
}

// write sets some roles in the ConfigMap of a database.
func (r *reconciler) write(ctx context.Context, db *Database, roles map[string]string) (bool, error) {
	routes := &corev1.ConfigMap{}
	routes.Namespace, routes.Name = db.Namespace, db.Name+"-routes"
	return r.Ensure(ctx, db, routes, func() {
		if routes.Data == nil {
			routes.Data = map[string]string{}
		}
		for role, members := range roles {
			routes.Data[role] = members
		}
		r.Own(db, routes)
	})
}

// replicas returns the members that are not the primary.
func replicas(primary string) string {
	members := slices.DeleteFunc([]string{"a", "b", "c"}, func(m string) bool { return m == primary })
	return strings.Join(members, " ")
}

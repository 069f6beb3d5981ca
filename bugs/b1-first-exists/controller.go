// Package b1 reconciles databases, each with two secrets: one for its clients and one for
// traffic between its members. Class B1: two objects belong together, but the controller
// checks only whether the first one exists.
package b1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Host string `json:"host"`
}

// Status is the observed state.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Database is the kind that is reconciled.
type Database = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in when they create the secrets.
type reconciler struct {
	child.Keeper
	ensure func(ctx context.Context, k child.Keeper, db *Database) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Database")
	r := &reconciler{Keeper: child.NewKeeper(mgr), ensure: bothOrNone}
	if repaired {
		r.ensure = eachForItself
	}
	return ctrl.NewControllerManagedBy(mgr).Named("b1").
		For(&Database{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Secret{}).
		Complete(r)
}

// Reconcile creates the secrets and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var db Database
	if err := r.Get(ctx, req.NamespacedName, &db); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	done, err := r.ensure(ctx, r.Keeper, &db)
	if err != nil || !done || db.Status.Generation == db.Generation {
		return ctrl.Result{}, err
	}
	db.Status.Generation = db.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &db))
}

// secret creates one of the two secrets. The certificate in the secret is only a string.
func secret(ctx context.Context, k child.Keeper, db *Database, suffix string) (bool, error) {
	s := &corev1.Secret{}
	s.Namespace, s.Name = db.Namespace, db.Name+suffix
	return k.Ensure(ctx, db, s, func() {
		s.Data = map[string][]byte{"tls.crt": []byte("certificate of " + db.Spec.Host + suffix)}
		k.Own(db, s)
	})
}

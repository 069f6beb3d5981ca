// Package b1 is a database with two secrets, one for its clients and one for its
// members among themselves. Class B1: two objects belong together, and one of them
// stands for both.
package b1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is what is wanted.
type Spec struct {
	Host string `json:"host"`
}

// Status is how far it is.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
}

// Database is the kind that is reconciled.
type Database = object.Object[Spec, Status]

// reconciler does what both twins do. They differ in when they make the secrets.
type reconciler struct {
	keep.Keeper
	ensure func(ctx context.Context, k keep.Keeper, db *Database) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Database")
	r := &reconciler{Keeper: keep.New(mgr), ensure: bothOrNone}
	if repaired {
		r.ensure = eachForItself
	}
	return ctrl.NewControllerManagedBy(mgr).Named("b1").
		For(&Database{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Secret{}).
		Complete(r)
}

// Reconcile makes the secrets and reports.
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

// secret makes one of the two. The certificate is one in name only.
func secret(ctx context.Context, k keep.Keeper, db *Database, suffix string) (bool, error) {
	s := &corev1.Secret{}
	s.Namespace, s.Name = db.Namespace, db.Name+suffix
	return k.Child(ctx, db, s, func() {
		s.Data = map[string][]byte{"tls.crt": []byte("certificate of " + db.Spec.Host + suffix)}
		k.Own(db, s)
	})
}

// Package z1 reconciles accounts. An account has an entry in a register that is in another namespace, and
// gets a last statement when it is deleted. Class Z1: a namespace cannot be deleted.
package z1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

const (
	// finalizer delays the deletion of an account until its entry in the register is gone.
	finalizer = "bugs.koboshi.dev/account"
	// register is the namespace of the entries.
	register = "default"
)

// Spec is the desired state.
type Spec struct {
	User string `json:"user"`
}

// Status is the observed state.
type Status struct {
	Ready bool `json:"ready,omitempty"`
}

// Account is the kind that is reconciled.
type Account = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in which
// errors prevent the cleanup.
type reconciler struct {
	child.Keeper
	blocks func(err error) bool
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Account")
	r := &reconciler{Keeper: child.NewKeeper(mgr), blocks: anyError}
	if repaired {
		r.blocks = otherErrors
	}
	return ctrl.NewControllerManagedBy(mgr).Named("z1").For(&Account{}).Watches(&corev1.ConfigMap{}, child.ToOwner()).Complete(r)
}

// Reconcile makes the entry of an account, and closes a deleted account.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var account Account
	if err := r.Live.Get(ctx, req.NamespacedName, &account); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !account.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.close(ctx, &account)
	}
	if controllerutil.AddFinalizer(&account, finalizer) {
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &account))
	}
	entry := entryOf(&account)
	there, err := r.Ensure(ctx, &account, entry, func() {
		child.Mark(entry, &account)
		entry.Data = map[string]string{"user": account.Spec.User}
	})
	if err != nil || !there || account.Status.Ready {
		return ctrl.Result{}, err
	}
	account.Status.Ready = true
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &account))
}

func entryOf(account *Account) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: register, Name: "account-" + account.Namespace + "-" + account.Name}}
}

// close writes the last statement, deletes the entry, and then lets the account go.
func (r *reconciler) close(ctx context.Context, account *Account) error {
	if !controllerutil.ContainsFinalizer(account, finalizer) {
		return nil
	}
	if err := r.state(ctx, account); err != nil && r.blocks(err) {
		return err
	}
	gone, err := r.Remove(ctx, entryOf(account), child.MarkedBy(account))
	if err != nil || !gone {
		return err
	}
	controllerutil.RemoveFinalizer(account, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, account))
}

// state writes the last statement of an account. The garbage collector deletes it after the account.
func (r *reconciler) state(ctx context.Context, account *Account) error {
	statement := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name + "-statement"}}
	statement.Data = map[string]string{"user": account.Spec.User}
	r.Own(account, statement)
	if err := r.Create(ctx, statement); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

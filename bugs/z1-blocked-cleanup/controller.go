// Package z1 reconciles accounts. An account has a Secret with its password, and an entry in a register
// that is in another namespace. Class Z1: a namespace cannot be deleted.
package z1

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// draining is the time that the clients of a deleted account get to disconnect.
	draining = 500 * time.Millisecond
)

// Spec is the desired state.
type Spec struct {
	User string `json:"user"`
}

// Status is the observed state.
type Status struct {
	// Phase is Ready or Draining.
	Phase string `json:"phase,omitempty"`
}

// Account is the kind that is reconciled.
type Account = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in what
// they do before the cleanup.
type reconciler struct {
	child.Keeper
	beforeCleanup func(ctx context.Context, r *reconciler, account *Account) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Account")
	r := &reconciler{Keeper: child.NewKeeper(mgr), beforeCleanup: ensurePassword}
	if repaired {
		r.beforeCleanup = nothing
	}
	return ctrl.NewControllerManagedBy(mgr).Named("z1").For(&Account{}).
		Owns(&corev1.Secret{}).Watches(&corev1.ConfigMap{}, child.ToOwner()).Complete(r)
}

// Reconcile makes the password and the entry of an account, and removes the entry of a deleted account.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var account Account
	if err := r.Live.Get(ctx, req.NamespacedName, &account); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !account.DeletionTimestamp.IsZero() {
		return r.release(ctx, &account)
	}
	if controllerutil.AddFinalizer(&account, finalizer) {
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &account))
	}
	if there, err := r.password(ctx, &account); err != nil || !there {
		return ctrl.Result{}, err
	}
	entry := entryOf(&account)
	there, err := r.Ensure(ctx, &account, entry, func() {
		child.Mark(entry, &account)
		entry.Data = map[string]string{"user": account.Spec.User}
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &account, "Ready")
}

// password makes the Secret of an account.
func (r *reconciler) password(ctx context.Context, account *Account) (bool, error) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name + "-password"}}
	return r.Ensure(ctx, account, s, func() {
		s.Data = map[string][]byte{"user": []byte(account.Spec.User)}
		r.Own(account, s)
	})
}

func entryOf(account *Account) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: register, Name: "account-" + account.Namespace + "-" + account.Name}}
}

// release waits until the clients have disconnected, deletes the entry, and then lets the account go.
func (r *reconciler) release(ctx context.Context, account *Account) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(account, finalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.report(ctx, account, "Draining"); err != nil {
		return ctrl.Result{}, err
	}
	if left := draining - time.Since(account.DeletionTimestamp.Time); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if ready, err := r.beforeCleanup(ctx, r, account); err != nil || !ready {
		return ctrl.Result{}, err
	}
	gone, err := r.Remove(ctx, entryOf(account), child.MarkedBy(account))
	if err != nil || !gone {
		return ctrl.Result{}, err
	}
	controllerutil.RemoveFinalizer(account, finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, account))
}

// report sets the phase of an account.
func (r *reconciler) report(ctx context.Context, account *Account, phase string) error {
	if account.Status.Phase == phase {
		return nil
	}
	account.Status.Phase = phase
	return client.IgnoreNotFound(r.Status().Update(ctx, account))
}

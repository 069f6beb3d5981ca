// Package t1 reconciles accounts of a service. The password of the administrator is in a Secret, and
// the service is called by a URL that contains the password. Class T1: the value of a Secret reaches
// a place that is not secret.
package t1

import (
	"context"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Role string `json:"role"`
}

// Status is the observed state. The message explains why an account is not ready.
type Status struct {
	Generation int64  `json:"generation,omitempty"`
	Message    string `json:"message,omitempty"`
}

// Account is the kind that is reconciled.
type Account = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in how
// they show the URL of the service.
type reconciler struct {
	child.Keeper
	show func(service *url.URL) string
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Account")
	r := &reconciler{Keeper: child.NewKeeper(mgr), show: whole}
	if repaired {
		r.show = withoutPassword
	}
	return ctrl.NewControllerManagedBy(mgr).Named("t1").For(&Account{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile registers an account, and reports the result. The registration is a ConfigMap, so that
// no service is needed.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var account Account
	if err := r.Live.Get(ctx, req.NamespacedName, &account); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !account.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	service, err := r.service(ctx, &account)
	if err != nil {
		return ctrl.Result{}, err
	}
	registered, failed := r.register(ctx, &account)
	if failed != nil {
		failed = fmt.Errorf("calling %s: %w", r.show(service), failed)
	}
	if failed == nil && !registered {
		return ctrl.Result{}, nil // an event follows
	}
	if err := r.report(ctx, &account, failed); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, failed
}

// service returns the URL of the service, with the password of the administrator.
func (r *reconciler) service(ctx context.Context, account *Account) (*url.URL, error) {
	var admin corev1.Secret
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: account.Namespace, Name: "admin"}, &admin); err != nil {
		return nil, fmt.Errorf("reading the credentials of the administrator: %w", err)
	}
	return &url.URL{Scheme: "https", Host: "accounts.example.com", User: url.UserPassword("admin", string(admin.Data["password"]))}, nil
}

func (r *reconciler) register(ctx context.Context, account *Account) (bool, error) {
	registration := &corev1.ConfigMap{}
	registration.Namespace, registration.Name = account.Namespace, account.Name+"-registration"
	return r.Ensure(ctx, account, registration, func() {
		registration.Data = map[string]string{"role": account.Spec.Role}
		r.Own(account, registration)
	})
}

// report writes the status, with a message if the registration failed.
func (r *reconciler) report(ctx context.Context, account *Account, failed error) error {
	want := Status{Generation: account.Generation}
	if failed != nil {
		want = Status{Generation: account.Status.Generation, Message: failed.Error()}
	}
	if account.Status == want {
		return nil
	}
	account.Status = want
	return client.IgnoreNotFound(r.Status().Update(ctx, account))
}

// Package e2 is class E2: what the controller writes is in another order each
// time, so that each write is a change and leads to the next.
package e2

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is what a person wants.
type Spec struct {
	Services []string `json:"services,omitempty"`
	Zones    []string `json:"zones,omitempty"`
}

// Status is what there is.
type Status struct {
	Ready []string `json:"ready,omitempty"`
}

// Application is some services, each of them in some zones.
type Application = object.Object[Spec, Status]

type reconciler struct {
	client.Client
	live client.Reader
	// list makes a list of what is ready where.
	list func(zones map[string]map[string]bool) []string
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Application")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader(), list: asItComes}
	if repaired {
		r.list = sorted
	}
	return ctrl.NewControllerManagedBy(mgr).Named("e2").For(&Application{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile makes the configuration of the services and reports where they are
// ready, if it has not reported it already.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var a Application
	if err := r.live.Get(ctx, req.NamespacedName, &a); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !a.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector has the rest
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name + "-config"}}
	err := child.Ensure(ctx, r.Client, config, func() error {
		config.Data = map[string]string{"services": strings.Join(a.Spec.Services, " ")}
		return controllerutil.SetControllerReference(&a, config, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	ready := r.list(byService(a.Spec))
	if slices.Equal(a.Status.Ready, ready) {
		return ctrl.Result{}, nil
	}
	a.Status.Ready = ready
	return ctrl.Result{}, r.Status().Update(ctx, &a)
}

// byService is in which zones a service is ready.
func byService(s Spec) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, service := range s.Services {
		all[service] = map[string]bool{}
		for _, zone := range s.Zones {
			all[service][zone] = true
		}
	}
	return all
}

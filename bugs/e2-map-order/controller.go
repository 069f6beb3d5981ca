// Package e2 has the bug of class E2: the controller writes the same list in a different
// order each time, so each write is a change and leads to the next write.
package e2

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Services []string `json:"services,omitempty"`
	Zones    []string `json:"zones,omitempty"`
}

// Status is the observed state.
type Status struct {
	Ready []string `json:"ready,omitempty"`
}

// Application is a set of services, each of which runs in some zones.
type Application = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
	// list returns the services that are ready, with their zones.
	list func(zones map[string]map[string]bool) []string
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Application")
	r := &reconciler{Keeper: child.NewKeeper(mgr), list: unsorted}
	if repaired {
		r.list = sorted
	}
	return ctrl.NewControllerManagedBy(mgr).Named("e2").For(&Application{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile creates the configuration of the services, and reports where they are ready,
// unless the status already has that report.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var a Application
	if err := r.Live.Get(ctx, req.NamespacedName, &a); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !a.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name + "-config"}}
	there, err := r.Ensure(ctx, &a, config, func() {
		config.Data = map[string]string{"services": strings.Join(a.Spec.Services, " ")}
		r.Own(&a, config)
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	ready := r.list(byService(a.Spec))
	if slices.Equal(a.Status.Ready, ready) {
		return ctrl.Result{}, nil
	}
	a.Status.Ready = ready
	return ctrl.Result{}, r.Status().Update(ctx, &a)
}

// byService returns the zones in which each service is ready.
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

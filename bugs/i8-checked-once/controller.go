// Package i8 has the bug of class I8: what a controller finds out at its start stays wrong until it is
// started again.
package i8

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Host string `json:"host,omitempty"`
}

// Status is the observed state.
type Status struct {
	Host string `json:"host,omitempty"`
}

// Website has a configuration, and a Route if that kind is installed.
type Website = object.Object[Spec, Status]

// RouteSpec describes where a Route leads.
type RouteSpec struct {
	Host string `json:"host,omitempty"`
}

// Route is an optional kind of another project.
type Route = object.Object[RouteSpec, struct{}]

type reconciler struct {
	child.Keeper
	routes bool // whether the kind Route is installed
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Website")
	object.Register[RouteSpec, struct{}]("Route")
	isInstalled := orAbsent
	if repaired {
		isInstalled = orUnknown
	}
	routes, err := isInstalled(readDefinition(mgr.GetConfig()))
	if err != nil {
		return fmt.Errorf("checking whether Routes are installed: %w", err)
	}
	r := &reconciler{Keeper: child.NewKeeper(mgr), routes: routes}
	b := ctrl.NewControllerManagedBy(mgr).Named("i8").For(&Website{}).Owns(&corev1.ConfigMap{})
	if routes {
		b = b.Owns(&Route{})
	}
	return b.Complete(r)
}

// readDefinition reads the definition of the kind Route.
func readDefinition(cfg *rest.Config) error {
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	_, err = c.Resource(definitions).Get(context.Background(), "routes.bugs.koboshi.dev", metav1.GetOptions{})
	return err
}

// Reconcile configures the website, and leads its host there.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w Website
	if err := r.Live.Get(ctx, req.NamespacedName, &w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	there, err := r.Ensure(ctx, &w, config, func() {
		config.Data = map[string]string{"host": w.Spec.Host}
		r.Own(&w, config)
	})
	if err != nil || !there {
		return ctrl.Result{}, err
	}
	if r.routes {
		route := &Route{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
		there, err := r.Ensure(ctx, &w, route, func() {
			route.Spec.Host = w.Spec.Host
			r.Own(&w, route)
		})
		if err != nil || !there {
			return ctrl.Result{}, err
		}
	}
	if w.Status.Host == w.Spec.Host {
		return ctrl.Result{}, nil
	}
	w.Status.Host = w.Spec.Host
	return ctrl.Result{}, r.Status().Update(ctx, &w)
}

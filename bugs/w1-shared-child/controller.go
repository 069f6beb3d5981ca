// Package w1 reconciles sites. The settings of a site are in a ConfigMap with a fixed name, so two
// sites in one namespace want the same ConfigMap. Class W1: two resources share a child.
package w1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// name is the name of the ConfigMap with the settings.
const name = "site-settings"

// Spec is the desired state.
type Spec struct {
	Theme string `json:"theme"`
}

// Status is the observed state. A site is in conflict if its settings belong to another site.
type Status struct {
	Generation int64 `json:"generation,omitempty"`
	Conflict   bool  `json:"conflict,omitempty"`
}

// Site is the kind that is reconciled.
type Site = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two differ in what
// they do with settings that belong to another site.
type reconciler struct {
	child.Keeper
	mayWrite func(ctx context.Context, r *reconciler, site *Site) (bool, error)
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Site")
	r := &reconciler{Keeper: child.NewKeeper(mgr), mayWrite: each}
	if repaired {
		r.mayWrite = first
	}
	return ctrl.NewControllerManagedBy(mgr).Named("w1").For(&Site{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.sites)).Complete(r)
}

// sites returns the sites that want a ConfigMap.
func (r *reconciler) sites(ctx context.Context, settings client.Object) (requests []reconcile.Request) {
	var sites object.List[Spec, Status]
	if settings.GetName() != name || r.List(ctx, &sites, client.InNamespace(settings.GetNamespace())) != nil {
		return nil // the cache is always there
	}
	for _, site := range sites.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&site)})
	}
	return requests
}

// Reconcile writes the settings of a site, and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := r.Live.Get(ctx, req.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	written, err := r.write(ctx, &site)
	if err != nil {
		return ctrl.Result{}, err
	}
	want := Status{Generation: site.Generation, Conflict: !written}
	if site.Status == want {
		return ctrl.Result{}, nil
	}
	site.Status = want
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &site))
}

// write creates or updates the settings, if the site may write them. The version of the settings
// prevents that a change by another client is overwritten.
func (r *reconciler) write(ctx context.Context, site *Site) (bool, error) {
	if may, err := r.mayWrite(ctx, r, site); err != nil || !may {
		return false, err
	}
	var settings corev1.ConfigMap
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: site.Namespace, Name: name}, &settings)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	exists := err == nil
	if exists && settings.Data["theme"] == site.Spec.Theme && metav1.IsControlledBy(&settings, site) {
		return true, nil
	}
	settings.Namespace, settings.Name = site.Namespace, name
	settings.Data = map[string]string{"theme": site.Spec.Theme}
	settings.OwnerReferences = nil
	r.Own(site, &settings)
	if exists {
		return true, r.Update(ctx, &settings)
	}
	return true, r.Create(ctx, &settings)
}

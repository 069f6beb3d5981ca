// Package k1 has the bug of class K1: two instances work at the same time, because one of
// them has lost its lease but keeps working.
package k1

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Rules string `json:"rules,omitempty"`
}

// Status is the observed state.
type Status struct {
	Rules string `json:"rules,omitempty"`
}

// Policy is a set of rules, published in a ConfigMap.
type Policy = object.Object[Spec, Status]

// Run runs the controller until ctx is done. If elect is true, the controller should work
// only while this process holds the lease.
func Run(ctx context.Context, cfg *rest.Config, repaired, elect bool) error {
	object.Register[Spec, Status]("Policy")
	work := func(ctx context.Context) error { return work(ctx, cfg) }
	if !elect {
		return work(ctx)
	}
	lock, err := newLock(cfg)
	if err != nil {
		return err
	}
	if repaired {
		return whileLeading(ctx, lock, work)
	}
	return onceLeading(ctx, lock, work)
}

// work runs the controllers until ctx is done.
func work(ctx context.Context, cfg *rest.Config) error {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:         object.Scheme,
		MapperProvider: object.Mapper,
		Metrics:        server.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: new(true)}, // each term of leadership has a separate controller
	})
	if err != nil {
		return fmt.Errorf("creating a manager: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("k1").
		For(&Policy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Complete(&reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()})
	if err != nil {
		return fmt.Errorf("creating the controller: %w", err)
	}
	return mgr.Start(ctx)
}

type reconciler struct {
	client.Client
	live client.Reader
}

// Reconcile publishes the rules of a Policy, and records the published rules in its status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var p Policy
	if err := r.live.Get(ctx, req.NamespacedName, &p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	rules := applycorev1.ConfigMap(p.Name+"-rules", p.Namespace).
		WithData(map[string]string{"rules": p.Spec.Rules}).
		WithOwnerReferences(applymetav1.OwnerReference().
			WithAPIVersion(object.Version.String()).WithKind("Policy").
			WithName(p.Name).WithUID(p.UID).
			WithController(true).WithBlockOwnerDeletion(true))
	if err := r.Apply(ctx, rules, client.FieldOwner("policy"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	if p.Status.Rules == p.Spec.Rules {
		return ctrl.Result{}, nil
	}
	p.Status.Rules = p.Spec.Rules
	return ctrl.Result{}, r.Status().Update(ctx, &p)
}

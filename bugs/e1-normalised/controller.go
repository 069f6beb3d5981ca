// Package e1 has the bug of class E1: the API server stores the object in a different
// form from the one that the controller writes, so the two never become equal.
package e1

import (
	"context"

	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Port int64 `json:"port,omitempty"`
}

// Status is the observed state.
type Status struct {
	Port int64 `json:"port,omitempty"`
}

// Perimeter opens one port to everyone by means of a NetworkPolicy.
type Perimeter = object.Object[Spec, Status]

type reconciler struct {
	client.Client
	live client.Reader
	// rule returns the only rule of the policy.
	rule func(port int64) map[string]any
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Perimeter")
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader(), rule: fromEmptyList}
	if repaired {
		r.rule = fromLeftOut
	}
	return ctrl.NewControllerManagedBy(mgr).Named("e1").For(&Perimeter{}).Owns(&netv1.NetworkPolicy{}).Complete(r)
}

// Reconcile applies the policy. Applying an unchanged policy changes nothing, so it
// causes no event.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var p Perimeter
	if err := r.live.Get(ctx, req.NamespacedName, &p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	policy := client.ApplyConfigurationFromUnstructured(r.policy(&p))
	if err := r.Apply(ctx, policy, client.FieldOwner("perimeter"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	if p.Status.Port == p.Spec.Port {
		return ctrl.Result{}, nil
	}
	p.Status.Port = p.Spec.Port
	return ctrl.Result{}, r.Status().Update(ctx, &p)
}

func (r *reconciler) policy(p *Perimeter) *unstructured.Unstructured {
	owner := metav1.NewControllerRef(p, object.Version.WithKind("Perimeter"))
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1",
		"kind":       "NetworkPolicy",
		"metadata": map[string]any{
			"namespace": p.Namespace,
			"name":      p.Name,
			"ownerReferences": []any{map[string]any{
				"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": owner.Name, "uid": string(owner.UID),
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": map[string]any{
			"podSelector": map[string]any{},
			"policyTypes": []any{"Ingress"},
			"ingress":     []any{r.rule(p.Spec.Port)},
		},
	}}
}

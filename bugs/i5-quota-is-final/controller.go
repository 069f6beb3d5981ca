// Package i5 has the bug of class I5: a creation that a quota refuses is recorded as a permanent
// failure.
package i5

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Runners int `json:"runners,omitempty"`
}

// Status is the observed state.
type Status struct {
	Phase      string `json:"phase,omitempty"`
	Generation int64  `json:"generation,omitempty"`
}

// RunnerSet is a number of runners, which can only grow. A ConfigMap stands in for the Pod of each
// runner, which would need a service account.
type RunnerSet = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("RunnerSet")
	base := &reconciler{Keeper: child.NewKeeper(mgr)}
	var r reconcile.Reconciler = &gives{base}
	if repaired {
		r = &waits{base}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("i5").For(&RunnerSet{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// get reads a RunnerSet. It returns nil if the RunnerSet does not exist or is being deleted.
func (r *reconciler) get(ctx context.Context, req ctrl.Request) (*RunnerSet, error) {
	var set RunnerSet
	if err := r.Live.Get(ctx, req.NamespacedName, &set); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !set.DeletionTimestamp.IsZero() {
		return nil, nil // the garbage collector does the rest
	}
	return &set, nil
}

func (r *reconciler) ensureRunners(ctx context.Context, set *RunnerSet) (bool, error) {
	all := true
	for n := range set.Spec.Runners {
		runner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, n)}}
		there, err := r.Ensure(ctx, set, runner, func() {
			runner.Data = map[string]string{"runner": fmt.Sprint(n)}
			r.Own(set, runner)
		})
		if err != nil {
			return false, fmt.Errorf("runner %d: %w", n, err)
		}
		all = all && there
	}
	return all, nil
}

func (r *reconciler) report(ctx context.Context, set *RunnerSet, phase string) error {
	want := Status{Phase: phase, Generation: set.Generation}
	if set.Status == want {
		return nil
	}
	set.Status = want
	return r.Status().Update(ctx, set)
}

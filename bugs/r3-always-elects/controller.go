// Package r3 has a correct controller that always elects a leader, with the usual durations
// of controller-runtime: after a kill, its Lease expires only after 15 s.
//
// A checker that waits for the Lease in each run needs twenty seconds for each kill. A checker that
// mistakes the wait for the end of the work compares states that are not final.
package r3

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Text string `json:"text,omitempty"`
}

// Status is the observed state.
type Status struct {
	Text string `json:"text,omitempty"`
}

// Signal is a text, published in a ConfigMap.
type Signal = object.Object[Spec, Status]

// Run runs the controller until ctx is done. The controller has no bug, so there is nothing
// to repair.
func Run(ctx context.Context, cfg *rest.Config, _ bool) error {
	object.Register[Spec, Status]("Signal")
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: object.Scheme, MapperProvider: object.Mapper, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "bugs-r3", LeaderElectionNamespace: "default",
	})
	if err != nil {
		return fmt.Errorf("creating a manager: %w", err)
	}
	r := &reconciler{child.NewKeeper(mgr)}
	if err := ctrl.NewControllerManagedBy(mgr).Named("r3").For(&Signal{}).Owns(&corev1.ConfigMap{}).Complete(r); err != nil {
		return fmt.Errorf("creating the controller: %w", err)
	}
	return mgr.Start(ctx)
}

type reconciler struct{ child.Keeper }

// Reconcile publishes the text of a Signal, and records it in the status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s Signal
	if err := r.Live.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-signal"}}
	there, err := r.Ensure(ctx, &s, cm, func() {
		cm.Data = map[string]string{"text": s.Spec.Text}
		r.Own(&s, cm)
	})
	if err != nil || !there || s.Status.Text == s.Spec.Text {
		return ctrl.Result{}, err
	}
	s.Status.Text = s.Spec.Text
	return ctrl.Result{}, r.Status().Update(ctx, &s)
}

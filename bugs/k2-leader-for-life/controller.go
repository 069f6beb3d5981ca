// Package k2 has the bug of class K2: after the leader has been killed, no other instance
// can lead.
package k2

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

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

// Notice is a text, published in a ConfigMap.
type Notice = object.Object[Spec, Status]

// lock is a Lease, together with the name under which this process holds it.
type lock struct {
	leases  coordinationv1.CoordinationV1Interface
	lease   metav1.ObjectMeta
	thisOne string
}

// Run runs the controller until ctx is done. The controller works only while this process
// leads.
func Run(ctx context.Context, cfg *rest.Config, repaired bool) error {
	object.Register[Spec, Status]("Notice")
	leases, err := coordinationv1.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("creating a client for leases: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the host name: %w", err)
	}
	l := lock{leases: leases, lease: metav1.ObjectMeta{Namespace: "default", Name: "bugs-k2"}, thisOne: host + "_" + string(uuid.NewUUID())}
	lead := l.forLife
	if repaired {
		lead = l.whileItLives
	}
	return lead(ctx, func(ctx context.Context) error { return work(ctx, cfg) })
}

// work runs the controllers until ctx is done.
func work(ctx context.Context, cfg *rest.Config) error {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: object.Scheme, MapperProvider: object.Mapper, Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return fmt.Errorf("creating a manager: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("k2").
		For(&Notice{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
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

// Reconcile publishes a Notice, and records the published text in its status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var n Notice
	if err := r.live.Get(ctx, req.NamespacedName, &n); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !n.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	up := applycorev1.ConfigMap(n.Name+"-notice", n.Namespace).
		WithData(map[string]string{"text": n.Spec.Text}).
		WithOwnerReferences(applymetav1.OwnerReference().
			WithAPIVersion(object.Version.String()).WithKind("Notice").
			WithName(n.Name).WithUID(n.UID).
			WithController(true).WithBlockOwnerDeletion(true))
	if err := r.Apply(ctx, up, client.FieldOwner("notice"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	if n.Status.Text == n.Spec.Text {
		return ctrl.Result{}, nil
	}
	n.Status.Text = n.Spec.Text
	return ctrl.Result{}, r.Status().Update(ctx, &n)
}

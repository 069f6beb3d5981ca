// Package d2 has the bug of class D2: after a restart, the controller sees an old spec
// and does something destructive that is no longer wanted.
package d2

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Proxy bool `json:"proxy,omitempty"`
	Size  int  `json:"size,omitempty"`
}

// Status is the observed state.
type Status struct {
	Proxy bool `json:"proxy,omitempty"`
	Size  int  `json:"size,omitempty"`
}

// Cluster is a database that may have a proxy in front of it.
type Cluster = object.Object[Spec, Status]

type reconciler struct {
	child.Keeper
	// clusters reads Clusters.
	clusters client.Reader
	// stopProxy deletes the proxy.
	stopProxy func(ctx context.Context, c *Cluster) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Cluster")
	r := &reconciler{Keeper: child.NewKeeper(mgr)}
	if repaired {
		r.repair()
	} else {
		r.clusters, r.stopProxy = r.Client, r.deleteOnCachedSpec
	}
	return ctrl.NewControllerManagedBy(mgr).Named("d2").For(&Cluster{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile creates the configuration of the proxy if the spec turns the proxy on.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var c Cluster
	if err := r.clusters.Get(ctx, req.NamespacedName, &c); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !c.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	if done, err := r.ensureProxy(ctx, &c); err != nil || !done {
		return ctrl.Result{}, err
	}
	if want := Status(c.Spec); c.Status != want {
		c.Status = want
		return ctrl.Result{}, r.Status().Update(ctx, &c)
	}
	return ctrl.Result{}, nil
}

func proxy(c *Cluster) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name + "-proxy"}}
}

func (r *reconciler) ensureProxy(ctx context.Context, c *Cluster) (bool, error) {
	if !c.Spec.Proxy {
		return true, r.stopProxy(ctx, c)
	}
	p := proxy(c)
	return r.Ensure(ctx, c, p, func() {
		p.Data = map[string]string{"backends": strconv.Itoa(c.Spec.Size)}
		r.Own(c, p)
	})
}

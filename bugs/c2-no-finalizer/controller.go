// Package c2 reconciles clusters, each with a ConfigMap and a Secret that have no owner
// references and would therefore outlive the cluster. Class C2: no finalizer holds the
// cluster until its children are deleted.
package c2

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// A child is named after the cluster, with one of these suffixes.
const (
	configSuffix = "-config"
	secretSuffix = "-credentials"
)

// Spec is the desired state.
type Spec struct {
	Version string `json:"version"`
}

// Status is the observed state.
type Status struct {
	Version string `json:"version,omitempty"`
}

// Cluster is the kind that is reconciled.
type Cluster = object.Object[Spec, Status]

// reconciler holds everything that the controller and its repaired twin share; the two
// differ in what they do when a cluster is deleted.
type reconciler struct {
	child.Keeper
	// begin is called before anything is created, and reports whether to continue.
	begin func(ctx context.Context, k child.Keeper, cluster *Cluster) (bool, error)
	// gone is called for a cluster that does not exist.
	gone func(ctx context.Context, k child.Keeper, key client.ObjectKey) error
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("PostgresCluster")
	r := &reconciler{Keeper: child.NewKeeper(mgr), begin: justBegin, gone: deleteAfter}
	if repaired {
		r.begin, r.gone = holdAndRelease, forget
	}
	return ctrl.NewControllerManagedBy(mgr).Named("c2").
		For(&Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf)).
		Complete(r)
}

// clusterOf returns the cluster to which an object belongs according to the object's
// name. clusterOf returns nothing if there is no such cluster.
func (r *reconciler) clusterOf(ctx context.Context, obj client.Object) []reconcile.Request {
	for _, suffix := range []string{configSuffix, secretSuffix} {
		name, ok := strings.CutSuffix(obj.GetName(), suffix)
		key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}
		if ok && r.Get(ctx, key, &Cluster{}) == nil {
			return []reconcile.Request{{NamespacedName: key}}
		}
	}
	return nil
}

// Reconcile creates the children and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster Cluster
	if err := r.Get(ctx, req.NamespacedName, &cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			err = r.gone(ctx, r.Keeper, req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	if ok, err := r.begin(ctx, r.Keeper, &cluster); err != nil || !ok {
		return ctrl.Result{}, err
	}
	done, err := r.children(ctx, &cluster)
	if err != nil || !done || cluster.Status.Version == cluster.Spec.Version {
		return ctrl.Result{}, err
	}
	cluster.Status.Version = cluster.Spec.Version
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &cluster))
}

// children creates both children.
func (r *reconciler) children(ctx context.Context, cluster *Cluster) (bool, error) {
	config, secret := childrenOf(client.ObjectKeyFromObject(cluster))
	first, err := r.Ensure(ctx, cluster, config, func() {
		config.Data = map[string]string{"version": cluster.Spec.Version}
	})
	if err != nil {
		return false, err
	}
	second, err := r.Ensure(ctx, cluster, secret, func() {
		secret.Data = map[string][]byte{"user": []byte(cluster.Name)}
	})
	return first && second, err
}

func childrenOf(key client.ObjectKey) (*corev1.ConfigMap, *corev1.Secret) {
	config, secret := &corev1.ConfigMap{}, &corev1.Secret{}
	config.Namespace, config.Name = key.Namespace, key.Name+configSuffix
	secret.Namespace, secret.Name = key.Namespace, key.Name+secretSuffix
	return config, secret
}

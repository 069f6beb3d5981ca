// Package c3 reconciles peers, each with a ConfigMap, and uses only client-go. Class C3:
// the event of a deletion was missed, so the informer reports the deletion with an
// object of another type.
package c3

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Address string `json:"address"`
}

// Status is empty.
type Status struct{}

// Peer is the kind that is reconciled.
type Peer = object.Object[Spec, Status]

// controller holds everything that this controller and its repaired twin share; the two
// differ in how they handle the event of a deletion.
type controller struct {
	child.Keeper
	queue workqueue.TypedRateLimitingInterface[client.ObjectKey]
}

// Run runs the controller until the context ends.
func Run(ctx context.Context, cfg *rest.Config, repaired bool) error {
	object.Register[Spec, Status]("Peer")
	c, err := newController(cfg)
	if err != nil {
		return err
	}
	deleted := c.castAnyway
	if repaired {
		deleted = c.unwrap
	}
	informers, err := c.informers(cfg, deleted)
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	for resource, ok := range informers.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("waiting for the first list of %s: %w", resource.Resource, context.Cause(ctx))
		}
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	for c.next(ctx) {
	}
	return nil
}

// newController returns a controller that reads only from the server; events only determine
// when it reads.
func newController(cfg *rest.Config) (*controller, error) {
	mapper, err := object.Mapper(nil, nil)
	if err != nil {
		return nil, err
	}
	live, err := client.New(cfg, client.Options{Scheme: object.Scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	limiter := workqueue.DefaultTypedControllerRateLimiter[client.ObjectKey]()
	return &controller{
		Keeper: child.Keeper{Client: live, Live: live},
		queue:  workqueue.NewTypedRateLimitingQueue(limiter),
	}, nil
}

// informers returns informers for peers and for ConfigMaps. An event of a ConfigMap
// enqueues the peer that owns it.
func (c *controller) informers(cfg *rest.Config, deleted func(any)) (dynamicinformer.DynamicSharedInformerFactory, error) {
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a dynamic client: %w", err)
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	peers := factory.ForResource(object.Version.WithResource("peers")).Informer()
	_, err = peers.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, obj any) { c.enqueue(obj) },
		DeleteFunc: deleted,
	})
	if err != nil {
		return nil, fmt.Errorf("watching peers: %w", err)
	}
	configMaps := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
	_, err = configMaps.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueueOwner,
		DeleteFunc: c.enqueueOwner,
		UpdateFunc: func(old, obj any) {
			c.enqueueOwner(old)
			c.enqueueOwner(obj)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching config maps: %w", err)
	}
	return factory, nil
}

// enqueue schedules a peer.
func (c *controller) enqueue(obj any) {
	if peer, ok := obj.(*unstructured.Unstructured); ok {
		c.queue.Add(client.ObjectKeyFromObject(peer))
	}
}

// enqueueOwner schedules the peer of a ConfigMap.
func (c *controller) enqueueOwner(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	route, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	if ref := metav1.GetControllerOf(route); ref != nil && ref.Kind == "Peer" {
		c.queue.Add(client.ObjectKey{Namespace: route.GetNamespace(), Name: ref.Name})
	}
}

// next reconciles one peer, and reports whether to continue.
func (c *controller) next(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.reconcile(ctx, key); err != nil {
		slog.Error("reconciling", "peer", key, "err", err)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// reconcile creates the ConfigMap of a peer. The peer owns the ConfigMap, so the garbage
// collector deletes both together.
func (c *controller) reconcile(ctx context.Context, key client.ObjectKey) error {
	var peer Peer
	if err := c.Get(ctx, key, &peer); err != nil {
		return client.IgnoreNotFound(err)
	}
	route := &corev1.ConfigMap{}
	route.Namespace, route.Name = key.Namespace, "route-"+key.Name
	_, err := c.Ensure(ctx, &peer, route, func() {
		route.Data = map[string]string{"to": peer.Spec.Address}
		c.Own(&peer, route)
	})
	return err
}

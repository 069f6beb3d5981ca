// Package operator runs controllers that use client-go.
package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/koboshi-dev/koboshi/operators/foo/pkg/generated/clientset/versioned"
	"github.com/koboshi-dev/koboshi/operators/foo/pkg/generated/informers/externalversions"
)

// resync is the interval at which controllers reconcile all objects even if nothing has changed.
const resync = 10 * time.Hour

// workers is the number of objects that each controller reconciles at the same time.
const workers = 2

// An Operator holds what its controllers share, and runs them.
type Operator struct {
	// Kubernetes is a client for Kubernetes' own kinds, and Client for the kinds of this project.
	Kubernetes kubernetes.Interface
	Client     versioned.Interface
	// KubernetesInformers and Informers read the same kinds from a cache.
	KubernetesInformers informers.SharedInformerFactory
	Informers           externalversions.SharedInformerFactory
	// Events records Events.
	Events events.EventBroadcaster

	controllers []Controller
	synced      atomic.Bool
}

// A Controller reconciles the objects of one kind.
type Controller interface {
	// Run reconciles until the context ends, and waits until its workers have ended.
	Run(ctx context.Context, workers int)
}

// New returns an operator for the cluster of a client configuration. It has no controllers yet.
func New(config *rest.Config) (*Operator, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the client for Kubernetes' kinds: %w", err)
	}
	own, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the client for the kinds of this project: %w", err)
	}
	return &Operator{
		Kubernetes:          client,
		Client:              own,
		KubernetesInformers: informers.NewSharedInformerFactory(client, resync),
		Informers:           externalversions.NewSharedInformerFactory(own, resync),
		Events:              events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}),
	}, nil
}

// Add adds a controller. All controllers must be added before Start.
func (o *Operator) Add(c Controller) { o.controllers = append(o.controllers, c) }

// Start fills the caches and keeps them up to date until the context ends. It returns when they
// are filled, which may be before the operator becomes the leader.
func (o *Operator) Start(ctx context.Context) error {
	o.KubernetesInformers.StartWithContext(ctx)
	o.Informers.StartWithContext(ctx)
	err := errors.Join(
		o.KubernetesInformers.WaitForCacheSyncWithContext(ctx).AsError(),
		o.Informers.WaitForCacheSyncWithContext(ctx).AsError(),
	)
	if ctx.Err() != nil {
		return nil // the operator is stopped before it has begun to work
	}
	if err != nil {
		return fmt.Errorf("filling the caches: %w", err)
	}
	o.synced.Store(true)
	return nil
}

// Ready reports whether the caches are filled.
func (o *Operator) Ready() bool { return o.synced.Load() }

// Run runs the controllers until the context ends, and waits until their workers have ended.
// If there are several operators, only the leader may run them.
func (o *Operator) Run(ctx context.Context) error {
	if err := o.Events.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("recording events: %w", err)
	}
	defer o.Events.Shutdown()
	var running sync.WaitGroup
	for _, c := range o.controllers {
		running.Go(func() { c.Run(ctx, workers) })
	}
	running.Wait()
	return nil
}

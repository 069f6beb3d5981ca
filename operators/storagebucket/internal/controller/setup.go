package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/refs"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/stores"
)

// Options are the options of the controllers.
type Options struct {
	// Stores configures the connections.
	Stores stores.Options
	// MaxConcurrent limits the number of buckets that are reconciled at the same time.
	MaxConcurrent int
	// Heartbeat is the minimum time between two status writes if only the time of the probe
	// has changed. Zero means that a new probe time alone never causes a write.
	Heartbeat time.Duration
	// Cluster identifies this cluster in the ownership tags.
	Cluster string
	// Namespaces are the only namespaces in the manager's cache; an empty list means all.
	Namespaces []string
	// Clock is the clock of all controllers and tickers.
	Clock clock.Clock
}

// Setup adds the controllers, and the tickers that wake them, to a manager. The
// manager's cache must have been created with CacheOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) (*Controllers, error) {
	if err := addIndexes(ctx, mgr); err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating the client for referenced objects: %w", err)
	}
	storeWake, bucketWake := &waker{}, &waker{}
	shared := &stores.Registry{
		Reader: mgr.GetAPIReader(), Options: o.Stores,
		Refs: refs.New(objects, func(owners []types.NamespacedName) {
			storeWake.wake(owners...)
			bucketWake.wake(bucketsIn(ctx, mgr.GetClient(), owners...)...)
		}),
	}
	inline := &stores.Registry{
		Reader: mgr.GetAPIReader(), Options: o.Stores,
		Refs: refs.New(objects, func(owners []types.NamespacedName) { bucketWake.wake(owners...) }),
	}
	ofStores := &Stores{
		Client: mgr.GetClient(), Events: mgr.GetEventRecorder("storagebucket"), Clock: o.Clock, Heartbeat: o.Heartbeat,
		plan: schedule.NewPlan(o.Clock), registry: shared, gate: newGate(), watched: o.Namespaces,
	}
	ofBuckets := &Buckets{
		Client: mgr.GetClient(), Events: ofStores.Events, Clock: o.Clock, Cluster: o.Cluster, Heartbeat: o.Heartbeat,
		plan: schedule.NewPlan(o.Clock), drift: newDriftClock(), atOnce: max(1, o.MaxConcurrent/2),
		sites: &sites{reader: mgr.GetClient(), shared: shared, inline: inline, gate: ofStores.gate, plan: ofStores.plan, watched: o.Namespaces},
	}
	return newControllers(mgr, ofBuckets.plan), errors.Join(
		mgr.Add(shared.Refs), mgr.Add(inline.Refs),
		ofStores.setup(mgr, storeWake), ofBuckets.setup(mgr, o.MaxConcurrent, bucketWake))
}

func (r *Stores) setup(mgr ctrl.Manager, changed source.Source) error {
	due, err := addTicker(mgr, r.plan, r.Clock)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("objectstore").
		For(&storagev1.ObjectStore{}, builder.WithPredicates(specChanged())).
		Watches(&storagev1.StorageBucket{}, toStore(), builder.WithPredicates(managementChanged())).
		WatchesRawSource(source.Channel(due, enqueueDue())).
		WatchesRawSource(changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: storesAtOnce}).
		Complete(r)
}

// storesAtOnce is the number of stores that are checked at the same time, so that a store
// that hangs does not delay the others.
const storesAtOnce = 16

func (r *Buckets) setup(mgr ctrl.Manager, maxConcurrent int, changed source.Source) error {
	due, err := addTicker(mgr, r.plan, r.Clock)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("storagebucket").
		For(&storagev1.StorageBucket{}, builder.WithPredicates(specChanged())).
		Watches(&storagev1.ObjectStore{}, toBuckets(mgr.GetClient()), builder.WithPredicates(standingChanged())).
		WatchesRawSource(source.Channel(due, enqueueDue())).
		WatchesRawSource(changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrent}).
		WithLogConstructor(logOf(mgr.GetLogger().WithName("storagebucket"))).
		Complete(r)
}

// logOf makes the logger of a reconciliation add only the name of the object. By default,
// controller-runtime adds six values, and prepares them even if nothing is logged.
func logOf(base logr.Logger) func(*reconcile.Request) logr.Logger {
	return func(req *reconcile.Request) logr.Logger {
		if req == nil {
			return base
		}
		return base.WithValues("object", klog.KRef(req.Namespace, req.Name))
	}
}

// addTicker adds the Runnable that announces the due objects of a plan.
func addTicker(mgr ctrl.Manager, plan *schedule.Plan, c clock.Clock) (chan schedule.Event, error) {
	due := make(chan schedule.Event)
	if err := mgr.Add(&schedule.Ticker{Plan: plan, Clock: c, Events: due}); err != nil {
		return nil, fmt.Errorf("adding the ticker: %w", err)
	}
	return due, nil
}

// These are the indexes of StorageBuckets in the cache.
const (
	// storeIndex finds the buckets in an ObjectStore.
	storeIndex = ".store"
	// managedIn finds the managed buckets in an ObjectStore.
	managedIn = ".managedIn"
	// claimIndex finds the objects that manage the same bucket.
	claimIndex = ".claim"
)

func addIndexes(ctx context.Context, mgr ctrl.Manager) error {
	for name, value := range map[string]func(*storagev1.StorageBucket) string{
		storeIndex: storeOf,
		managedIn: func(b *storagev1.StorageBucket) string {
			if !b.Managed() {
				return ""
			}
			return storeOf(b)
		},
		claimIndex: claimOf,
	} {
		err := mgr.GetFieldIndexer().IndexField(ctx, &storagev1.StorageBucket{}, name, func(o client.Object) []string {
			if b, ok := o.(*storagev1.StorageBucket); ok && value(b) != "" {
				return []string{value(b)}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("indexing buckets by %s: %w", name, err)
		}
	}
	return nil
}

// storeOf returns the key of the ObjectStore a bucket is in, or "" for an inline store.
func storeOf(b *storagev1.StorageBucket) string {
	namespace, name := b.StoreKey()
	if name == "" {
		return ""
	}
	return types.NamespacedName{Namespace: namespace, Name: name}.String()
}

// claimOf returns a key for the bucket that an object manages, or "" if the object
// manages none.
func claimOf(b *storagev1.StorageBucket) string {
	if !b.Managed() {
		return ""
	}
	return storeOf(b) + "/" + b.BucketName()
}

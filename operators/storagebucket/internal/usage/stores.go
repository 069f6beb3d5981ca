package usage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/stores"
)

// Declared finds the stores that ObjectStores and StorageBuckets declare, and
// reads them from the API server each time.
type Declared struct {
	// Reader must not be a cache: Secrets are read through it.
	Reader client.Reader
	// Namespaces are the only namespaces that are read; an empty list means all.
	Namespaces []string
	// Options limit the requests to one store, for all clients together.
	Options stores.Options
}

// Find implements Stores.
func (d *Declared) Find(ctx context.Context, bucket *storagev1.StorageBucket) (Store, error) {
	namespace, name := bucket.StoreKey()
	if name == "" {
		if bucket.Spec.Store == nil {
			return nil, nil
		}
		return d.at(stores.OfInline(bucket.Namespace, bucket.Spec.Store), nil), nil
	}
	if !within(d.Namespaces, namespace) {
		return nil, nil
	}
	var object storagev1.ObjectStore
	err := d.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ObjectStore %s: %w", storeName(bucket), err)
	}
	return d.at(stores.OfStore(&object), &object), nil
}

func (d *Declared) at(location stores.Location, object *storagev1.ObjectStore) *declared {
	s := &declared{Declared: d, location: location, object: object, concurrency: max(1, d.Options.Concurrency)}
	if n := int(location.Limits.Concurrency); n > 0 {
		s.concurrency = min(s.concurrency, n)
	}
	return s
}

// declared is one store.
type declared struct {
	*Declared
	location    stores.Location
	object      *storagev1.ObjectStore
	concurrency int
}

// Allows implements Store. An inline store belongs to its bucket, so every namespace is
// allowed.
func (s *declared) Allows(namespace string) bool {
	return s.object == nil || stores.Allowed(s.object, namespace)
}

// Concurrency implements Store.
func (s *declared) Concurrency() int { return s.concurrency }

// Connect implements Store. Every request has its own connection, and at most Concurrency
// connections are in use at the same time. Each connection gets the same fraction of the
// store's rate, so that all connections together do not exceed the rate, although they
// share nothing.
func (s *declared) Connect(ctx context.Context) (Counter, error) {
	location, options := s.location, s.Options
	options.RequestsPerSecond /= float64(s.concurrency)
	if n := location.Limits.RequestsPerSecond; n > 0 {
		options.RequestsPerSecond = min(options.RequestsPerSecond, float64(n)/float64(s.concurrency))
		location.Limits.RequestsPerSecond = 0
	}
	store, err := stores.Connect(ctx, s.Reader, location, options)
	if err != nil {
		return nil, err
	}
	return store, nil
}

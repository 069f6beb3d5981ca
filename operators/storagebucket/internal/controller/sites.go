package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/metrics"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/stores"
)

// site is the store of a bucket, with either the connection to the store or the problem
// that prevents it.
type site struct {
	// key identifies the ObjectStore; empty for an inline store.
	key types.NamespacedName
	// object is the ObjectStore; nil for an inline store, or if there is no ObjectStore
	// that the bucket may use.
	object *storagev1.ObjectStore
	// store is the connection; nil when there is a problem.
	store    *s3store.Store
	endpoint string
	// last reports whether store is an old connection, whose Secret or certificates have been
	// deleted.
	last bool
	// problem is the problem that a person must fix; nil if there is none.
	problem *finding
	// inputs changes with each new connection.
	inputs string
	// standing is the state of the store; always up for a store that is not shared.
	standing standing
}

// shared reports whether the controller of ObjectStores checks the store. The result is
// false if the store is inline or the ObjectStore is suspended.
func (s site) shared() bool {
	return s.object != nil && suspension(s.object, s.object.Spec.Suspend) == ""
}

// label names the store in metrics.
func (s site) label() string {
	if s.key.Name == "" {
		return metrics.InlineStore
	}
	return metrics.StoreName(s.key.Namespace, s.key.Name)
}

// sites finds the store of a bucket.
type sites struct {
	reader client.Reader
	// shared keeps the connections of ObjectStores; inline keeps the connections of buckets
	// with an inline store.
	shared *stores.Registry
	inline *stores.Registry
	gate   *gate
	// watched are the only namespaces in the cache; an empty list means all.
	watched []string
	// plan is the schedule of the checks of ObjectStores. sites uses it to request an
	// immediate check of a store.
	plan *schedule.Plan
}

// of finds a bucket's store. A problem that a person must fix is returned in the site.
// An error comes from the API server, or is stores.ErrNotYet.
func (s *sites) of(ctx context.Context, b *storagev1.StorageBucket) (site, error) {
	if b.Spec.StoreRef == nil {
		return s.ofInline(ctx, b)
	}
	namespace, name := b.StoreKey()
	where := site{key: types.NamespacedName{Namespace: namespace, Name: name}, standing: up}
	if !watches(s.watched, namespace) {
		where.problem = problemf(reasonStoreNotFound, "namespace %q of the ObjectStore is not among the operator's --namespaces", namespace)
		return where, nil
	}
	var store storagev1.ObjectStore
	err := s.reader.Get(ctx, where.key, &store)
	absent := apierrors.IsNotFound(err)
	switch {
	case absent && namespace == b.Namespace:
		where.problem = problemf(reasonStoreNotFound, "there is no ObjectStore %q in namespace %q", name, namespace)
		return where, nil
	case absent, err == nil && !stores.Allowed(&store, b.Namespace):
		// The message is the same for an ObjectStore that does not exist and for one that the
		// bucket may not use, so that a tenant does not learn which stores other tenants have.
		where.problem = problemf(reasonStoreNotAllowed, "there is no ObjectStore %s/%s that namespace %q may use: "+
			"check its name and its allowedNamespaces", namespace, name, b.Namespace)
		return where, nil
	}
	if err != nil {
		return where, fmt.Errorf("reading the ObjectStore: %w", err)
	}
	connection, err := s.shared.Connect(ctx, where.key, stores.OfStore(&store))
	if err != nil {
		return where, err
	}
	where.object, where.endpoint = &store, store.Spec.Endpoint
	where.take(connection, b)
	if where.shared() && !where.last {
		where.standing = s.gate.standingOf(where.key, where.inputs, &store.Status)
	}
	return where, nil
}

// watches reports whether a namespace is in the cache.
func watches(watched []string, namespace string) bool {
	return len(watched) == 0 || slices.Contains(watched, namespace)
}

func (s *sites) ofInline(ctx context.Context, b *storagev1.StorageBucket) (site, error) {
	where := site{standing: up}
	if b.Spec.Store == nil {
		where.problem = problemf(reasonStoreNotFound, "neither storeRef nor store is set")
		return where, nil
	}
	connection, err := s.inline.Connect(ctx, client.ObjectKeyFromObject(b), stores.OfInline(b.Namespace, b.Spec.Store))
	if err != nil {
		return where, err
	}
	where.endpoint = b.Spec.Store.Endpoint
	where.take(connection, b)
	return where, nil
}

// take sets the connection, or the problem, of a bucket's site. The deletion of a
// bucket may use the last good connection after the Secret is gone, because the Secret
// cannot be created again in a namespace that is being deleted. All other work stops
// when the Secret is gone.
func (s *site) take(c stores.Connection, b *storagev1.StorageBucket) {
	s.store, s.inputs = c.Store, c.Inputs
	switch {
	case c.Problem == nil:
	case c.Last != nil && !b.DeletionTimestamp.IsZero():
		s.store, s.last = c.Last, true
	default:
		f := failed(c.Problem)
		s.problem = &f
	}
}

func problemf(reason, format string, args ...any) *finding {
	return &finding{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// doubt reports whether a failed connection is certainly a problem of the bucket alone. If
// other buckets of the store may be affected, doubt requests a check of the store.
func (s *sites) doubt(bucket types.NamespacedName, where site, now time.Time) (believed bool) {
	if s.gate.believe(bucket, where.key, where.inputs, now) {
		return true
	}
	s.plan.Poke(where.key)
	return false
}

// forget drops the records of a bucket.
func (s *sites) forget(bucket types.NamespacedName) {
	s.inline.Forget(bucket)
	s.gate.trust(bucket)
}

// ignoreNotYet drops ErrNotYet, because the object is reconciled again when the versions
// of its Secret and certificates are known.
func ignoreNotYet(err error) error {
	if errors.Is(err, stores.ErrNotYet) {
		return nil
	}
	return err
}

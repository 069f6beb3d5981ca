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

// site is where a bucket is: its store, and what stands in the way of it.
type site struct {
	// key of the ObjectStore; empty for an inline store.
	key types.NamespacedName
	// object is the ObjectStore; nil for an inline store, and when it does not
	// exist.
	object *storagev1.ObjectStore
	// store is the connection; nil when there is a problem.
	store    *s3store.Store
	endpoint string
	// problem is what a person has to mend.
	problem *finding
	// inputs changes whenever the connection was made anew.
	inputs string
	// standing of the store; one that nobody asks is always up.
	standing standing
}

// shared tells whether the store's own controller asks it: it has one, and is
// not paused.
func (s site) shared() bool { return s.object != nil && !paused(s.object) }

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
	// shared keeps the connections of ObjectStores, inline those of buckets
	// that bring their store themselves.
	shared *stores.Registry
	inline *stores.Registry
	gate   *gate
	// watched are the only namespaces in the cache; none means all.
	watched []string
	// plan of the stores: one in doubt is asked at once.
	plan *schedule.Plan
}

// of finds a bucket's store. What a person has to mend is in the site; an error
// is the API server's, or stores.ErrNotYet.
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
	if err == nil && !stores.Allowed(&store, b.Namespace) {
		where.problem = problemf(reasonStoreNotAllowed, "the ObjectStore %s/%s does not list namespace %q in allowedNamespaces", namespace, name, b.Namespace)
		return where, nil
	}
	if apierrors.IsNotFound(err) {
		where.problem = problemf(reasonStoreNotFound, "there is no ObjectStore %q in namespace %q", name, namespace)
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
	where.take(connection)
	if where.shared() {
		where.standing = s.gate.standingOf(where.key, where.inputs, &store.Status)
	}
	return where, nil
}

// watches tells whether a namespace is in the cache.
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
	where.take(connection)
	return where, nil
}

func (s *site) take(c stores.Connection) {
	s.store, s.inputs = c.Store, c.Inputs
	if c.Problem != nil {
		f := failed(c.Problem)
		s.problem = &f
	}
}

func problemf(reason, format string, args ...any) *finding {
	return &finding{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// doubt tells whether the failure of a bucket's connection is to be believed.
// If not yet, its store is asked first.
func (s *sites) doubt(bucket types.NamespacedName, where site, now time.Time) (believed bool) {
	if s.gate.believe(bucket, where.key, where.inputs, now) {
		return true
	}
	s.plan.Poke(where.key)
	return false
}

// forget drops what is kept for a bucket.
func (s *sites) forget(bucket types.NamespacedName) {
	s.inline.Forget(bucket)
	s.gate.trust(bucket)
}

// ignoreNotYet: the owner is called again when it is known.
func ignoreNotYet(err error) error {
	if errors.Is(err, stores.ErrNotYet) {
		return nil
	}
	return err
}

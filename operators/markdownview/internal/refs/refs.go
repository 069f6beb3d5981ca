// Package refs watches objects that others refer to by name, without watching or
// caching other objects of their kind.
//
// Each such object has its own informer, limited to its name and metadata.
package refs

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"k8s.io/client-go/util/workqueue"
)

// Ref names an object.
type Ref struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

// Watcher is a source of requests for the owners of references. It is safe for
// concurrent use.
type Watcher struct {
	client metadata.Interface

	mu      sync.Mutex
	wanted  map[types.NamespacedName][]Ref
	watches map[Ref]*watch
	// begin starts a watch; nil until the Watcher runs.
	begin func(*watch)
}

// watch watches one object. Its fields are guarded by Watcher.mu.
type watch struct {
	ref    Ref
	owners map[types.NamespacedName]struct{}
	stop   context.CancelFunc
}

// New returns a Watcher.
func New(client metadata.Interface) *Watcher {
	return &Watcher{client: client, wanted: map[types.NamespacedName][]Ref{}, watches: map[Ref]*watch{}}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Start puts requests into a controller's queue until the context ends. A controller
// calls it once.
func (w *Watcher) Start(ctx context.Context, q queue) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin = func(one *watch) {
		ctx, cancel := context.WithCancel(ctx)
		one.stop = cancel
		go w.follow(ctx, one, q)
	}
	for _, one := range w.watches {
		w.begin(one)
	}
	return nil
}

// Want replaces the owner's references; none forgets the owner. The owner is enqueued
// for each object that exists, and for every later change.
func (w *Watcher) Want(owner types.NamespacedName, refs ...Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.wanted[owner]
	for _, ref := range refs {
		w.add(owner, ref)
	}
	for _, ref := range before {
		if !slices.Contains(refs, ref) {
			w.drop(owner, ref)
		}
	}
	if len(refs) == 0 {
		delete(w.wanted, owner)
		return
	}
	w.wanted[owner] = slices.Clone(refs)
}

// add must be called with w.mu held, as must drop.
func (w *Watcher) add(owner types.NamespacedName, ref Ref) {
	one, ok := w.watches[ref]
	if !ok {
		one = &watch{ref: ref, owners: map[types.NamespacedName]struct{}{}}
		w.watches[ref] = one
		if w.begin != nil {
			w.begin(one)
		}
	}
	one.owners[owner] = struct{}{}
}

func (w *Watcher) drop(owner types.NamespacedName, ref Ref) {
	one, ok := w.watches[ref]
	if !ok {
		return
	}
	delete(one.owners, owner)
	if len(one.owners) > 0 {
		return
	}
	delete(w.watches, ref)
	if one.stop != nil {
		one.stop()
	}
}

// follow runs an informer until the context ends.
func (w *Watcher) follow(ctx context.Context, one *watch, q queue) {
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, one.ref.Resource, one.ref.Namespace, 0, nil,
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, one.ref.Name).String()
		}).Informer()
	logger := logf.FromContext(ctx).WithName("refs").WithValues(
		"resource", one.ref.Resource.GroupResource().String(), "namespace", one.ref.Namespace, "name", one.ref.Name)
	err := informer.SetTransform(identity)
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			// A broken watch restarts by itself; a missing right does not appear by
			// itself.
			if apierrors.IsForbidden(err) {
				logger.Error(err, "cannot watch what is referred to: allow the operator to list and watch it")
			}
		})
	}
	if err == nil {
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { w.tell(ctx, one, q) },
			UpdateFunc: func(_, _ any) { w.tell(ctx, one, q) },
			DeleteFunc: func(any) { w.tell(ctx, one, q) },
		})
	}
	if err != nil {
		logger.Error(err, "cannot watch what is referred to")
		return
	}
	// A deletion between the owner's read and the first list produces no event.
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.tell(ctx, one, q)
		}
	}()
	informer.RunWithContext(ctx)
}

// tell enqueues the owners.
func (w *Watcher) tell(ctx context.Context, one *watch, q queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	for owner := range one.owners {
		q.Add(reconcile.Request{NamespacedName: owner})
	}
}

// identity reduces an object to its identity and version: kubectl apply's annotation
// repeats all content.
func identity(obj any) (any, error) {
	o, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil //nolint:nilerr // a tombstone has no metadata, and passes as it is
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}}, nil
}

// String formats the reference for messages of tests.
func (r Ref) String() string {
	return fmt.Sprintf("%s %s/%s", r.Resource.Resource, r.Namespace, r.Name)
}

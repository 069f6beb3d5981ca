// Package refs watches single objects that other objects refer to by name. The package does not
// watch or cache other objects of the same kind.
//
// Each referenced object has its own watch, limited to the name and the metadata of the
// object. Only the version of an object is kept.
package refs

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"k8s.io/client-go/util/workqueue"
)

// Ref names an object.
type Ref struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

// Watcher is an event source for a controller. When a referenced object changes, the
// Watcher enqueues the owner of the reference, which is the object that contains the
// reference. A Watcher is safe for concurrent use.
type Watcher struct {
	client metadata.Interface

	mu      sync.Mutex
	wanted  map[types.NamespacedName][]Ref
	watches map[Ref]*watched
	// begin starts a watch; nil until the Watcher runs.
	begin func(*watched)
}

// watched is an object with a watch. Its fields are guarded by Watcher.mu.
type watched struct {
	ref    Ref
	owners map[types.NamespacedName]struct{}
	stop   context.CancelFunc
}

// New returns a Watcher.
func New(client metadata.Interface) *Watcher {
	return &Watcher{client: client, wanted: map[types.NamespacedName][]Ref{}, watches: map[Ref]*watched{}}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Start puts requests into a controller's queue until the context ends. A controller
// calls it once.
func (w *Watcher) Start(ctx context.Context, q queue) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin = func(one *watched) {
		ctx, cancel := context.WithCancel(ctx)
		one.stop = cancel
		go w.follow(ctx, one, q)
	}
	for _, one := range w.watches {
		w.begin(one)
	}
	return nil
}

// Want replaces all references of the owner. A call without references removes the owner.
// The owner is enqueued when a new watch gets its first result, and for every later change
// of the object.
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

// add adds a reference. Callers of add and drop must hold w.mu.
func (w *Watcher) add(owner types.NamespacedName, ref Ref) {
	one, ok := w.watches[ref]
	if !ok {
		one = &watched{ref: ref, owners: map[types.NamespacedName]struct{}{}}
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

// tell enqueues the owners of references to the object.
func (w *Watcher) tell(ctx context.Context, one *watched, q queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	for owner := range one.owners {
		q.Add(reconcile.Request{NamespacedName: owner})
	}
}

// String formats the reference for test messages.
func (r Ref) String() string {
	return fmt.Sprintf("%s %s/%s", r.Resource.Resource, r.Namespace, r.Name)
}

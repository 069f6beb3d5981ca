// Package refs watches the Secrets and ConfigMaps that objects refer to, and no
// others.
//
// Each referenced object has its own watch, limited to its name, so that the rights to
// list and watch can be granted name by name. The watch requests only metadata, and
// keeps only the identity and the version, because an annotation written by kubectl
// apply can contain a copy of a Secret.
//
//	Want ──▶ unknown ── first listing ──▶ known: a version, or absent
//	          │    ▲                             ▲    │ any change: onChange
//	  refused │    └── Want, after it had no ────┼────┘
//	          ▼        owner left                │
//	      forbidden ── a listing is allowed ─────┘
//
// While the API server cannot be reached, or does not allow the watch, the last
// known version remains valid.
package refs

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Ref names a referenced object.
type Ref struct {
	// Kind is Secret or ConfigMap. Objects of other kinds are not watched, so their
	// version is never known.
	Kind string
	// Namespace and Name identify the object.
	Namespace, Name string
}

// Watcher watches the objects that owners refer to. It is a Runnable for a
// controller-runtime manager. Before Start, it only records which objects are wanted.
// It is safe for concurrent use.
type Watcher struct {
	client   metadata.Interface
	onChange func(owners []types.NamespacedName)

	mu      sync.Mutex
	wanted  map[types.NamespacedName][]Ref
	watches map[Ref]*watched
	// start starts a watch; it is nil while the Watcher does not run.
	start func(*watched)
}

// watched is one referenced object. Access to its fields requires Watcher.mu.
type watched struct {
	ref    Ref
	owners map[types.NamespacedName]struct{}
	// version is empty while the object does not exist.
	version string
	known   bool
	// forbidden reports whether the API server has refused the first listing.
	forbidden bool
	// stop ends the watch; it is nil until the watch has started.
	stop context.CancelFunc
}

var (
	_ manager.Runnable               = (*Watcher)(nil)
	_ manager.LeaderElectionRunnable = (*Watcher)(nil)
)

// New returns a Watcher. The Watcher calls onChange with the owners of an object after the
// first listing of the object, and after each change or deletion. The Watcher also calls
// onChange if the API server refuses the first listing of an object. onChange is called
// from several goroutines and must not block.
func New(client metadata.Interface, onChange func(owners []types.NamespacedName)) *Watcher {
	return &Watcher{
		client:   client,
		onChange: onChange,
		wanted:   map[types.NamespacedName][]Ref{},
		watches:  map[Ref]*watched{},
	}
}

// NeedLeaderElection limits the watches to the leader, because only the leader acts on
// them.
func (*Watcher) NeedLeaderElection() bool { return true }

// Start watches until the context ends, and returns when all watches have ended.
func (w *Watcher) Start(ctx context.Context) error {
	var running sync.WaitGroup
	w.mu.Lock()
	w.start = func(one *watched) {
		ctx, cancel := context.WithCancel(ctx)
		one.stop = cancel
		running.Go(func() { w.follow(ctx, one) })
	}
	for _, one := range w.watches {
		w.start(one)
	}
	w.mu.Unlock()

	<-ctx.Done()
	w.mu.Lock()
	w.start = nil
	w.mu.Unlock()
	running.Wait()
	return nil
}

// Want sets the objects that the owner refers to. Without refs, Want forgets the owner.
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

// Version returns the object's version; it is empty if the object does not
// exist. The version is not known before the first listing, or if no owner
// wants the object.
func (w *Watcher) Version(r Ref) (version string, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, ok := w.watches[r]
	if !ok {
		return "", false
	}
	return one.version, one.known
}

// Forbidden reports whether no version of the object is known because the API server has
// refused to list it. The listing is retried from time to time.
func (w *Watcher) Forbidden(r Ref) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, ok := w.watches[r]
	return ok && one.forbidden
}

// add and drop must be called with w.mu held.
func (w *Watcher) add(owner types.NamespacedName, ref Ref) {
	if _, watchable := resources[ref.Kind]; !watchable {
		return
	}
	one, ok := w.watches[ref]
	if !ok {
		one = &watched{ref: ref, owners: map[types.NamespacedName]struct{}{}}
		w.watches[ref] = one
		if w.start != nil {
			w.start(one)
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

// saw records a version, and calls onChange if it is new.
func (w *Watcher) saw(one *watched, version string) {
	w.mu.Lock()
	if one.known && one.version == version {
		w.mu.Unlock()
		return
	}
	one.known, one.forbidden, one.version = true, false, version
	owners := one.ownerList()
	w.mu.Unlock()
	if len(owners) > 0 { // once the watch has been stopped, there are no owners
		w.onChange(owners)
	}
}

// refused records that the API server does not allow reading the object, and
// calls onChange if no version of it is known.
func (w *Watcher) refused(one *watched) {
	w.mu.Lock()
	if one.known || one.forbidden {
		w.mu.Unlock()
		return
	}
	one.forbidden = true
	owners := one.ownerList()
	w.mu.Unlock()
	if len(owners) > 0 {
		w.onChange(owners)
	}
}

// ownerList must be called with Watcher.mu held.
func (one *watched) ownerList() []types.NamespacedName {
	return slices.Collect(maps.Keys(one.owners))
}

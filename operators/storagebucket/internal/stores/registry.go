package stores

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/refs"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

// ErrNotYet means that a location refers to objects whose versions are not known yet. The
// owner is reconciled again as soon as the versions of these objects are known.
var ErrNotYet = errors.New("the objects that the store refers to are not known yet")

// Registry keeps one connection for each location in use. It is safe
// for concurrent use.
type Registry struct {
	// Reader reads Secrets and ConfigMaps, from the API server.
	Reader client.Reader
	// Refs reports the versions of the existing Secrets and ConfigMaps.
	Refs *refs.Watcher
	// Options apply to every connection.
	Options Options

	mu      sync.Mutex
	entries map[string]*entry
	owners  map[types.NamespacedName]string
}

// entry is a connection and the number of its owners.
type entry struct {
	owners int

	// mu ensures that only one of several owners creates the connection.
	mu         sync.Mutex
	versions   string
	connection Connection
}

// Connection is a connection to a location, or the problem that prevents it.
type Connection struct {
	// Store is nil when there is a Problem.
	Store *s3store.Store
	// Problem is an error that a person must fix; nil if there is none.
	Problem *s3store.Error
	// Again reports whether the owner must call Connect again from time to time, because no
	// event is sent when the Problem ends.
	Again bool
	// Last is nil while all objects that the location refers to exist; if one of them was deleted,
	// Last is the connection from before the deletion. Last must be used only to complete
	// deletions, because a namespace that is being deleted may lose its Secret before its buckets.
	Last *s3store.Store
	// Inputs changes with each new connection.
	Inputs string
}

// Connect returns the owner's connection, and creates a new one if the location, or an object that
// it refers to, has changed. Connect returns ErrNotYet until the versions of the objects that the
// location refers to are known.
func (r *Registry) Connect(ctx context.Context, owner types.NamespacedName, l Location) (Connection, error) {
	r.Refs.Want(owner, l.Refs()...)
	versions, known := r.versions(l)
	if !known {
		if problem := r.forbidden(l); problem != nil {
			return Connection{Problem: problem, Again: true, Inputs: fingerprint(l.id(), string(problem.Reason))}, nil
		}
		return Connection{}, ErrNotYet
	}
	e := r.use(owner, l.id())
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.connection.Inputs != "" && e.versions == versions && !e.connection.Again {
		return e.connection, nil
	}
	store, err := Connect(ctx, r.Reader, l, r.Options)
	var problem *s3store.Error
	if err != nil && !errors.As(err, &problem) {
		return Connection{}, err
	}
	last := cmp.Or(e.connection.Store, e.connection.Last)
	if last != nil && (problem == nil || !r.missing(l)) {
		last.Close()
		last = nil
	}
	e.versions = versions
	e.connection = Connection{Store: store, Problem: problem, Last: last, Inputs: fingerprint(l.id(), versions)}
	if problem != nil && (problem.Reason.Forbidden() || problem == errNoIdentity) {
		// No event for the objects is sent when a right is granted or an identity is
		// mounted.
		e.connection.Again, e.connection.Inputs = true, fingerprint(l.id(), versions, string(problem.Reason))
	}
	return e.connection, nil
}

// forbidden returns an error if the location refers to an object that the operator has
// no right to list, and nil otherwise.
func (r *Registry) forbidden(l Location) *s3store.Error {
	if l.Credentials.SecretRef != nil && r.Refs.Forbidden(l.credentialsRef()) {
		return forbidden(useCredentials, l.credentialsRef())
	}
	if l.CABundle != nil && r.Refs.Forbidden(l.caBundleRef()) {
		return forbidden(useCABundle, l.caBundleRef())
	}
	return nil
}

// missing reports whether an object that the location refers to does not exist.
func (r *Registry) missing(l Location) bool {
	return slices.ContainsFunc(l.Refs(), func(ref refs.Ref) bool {
		version, known := r.Refs.Version(ref)
		return known && version == ""
	})
}

func (r *Registry) versions(l Location) (string, bool) {
	var b strings.Builder
	for _, ref := range l.Refs() {
		version, known := r.Refs.Version(ref)
		if !known {
			return "", false
		}
		b.WriteString("/" + version)
	}
	return b.String(), true
}

// use records the location of the owner, and releases the owner's previous location.
func (r *Registry) use(owner types.NamespacedName, id string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries, r.owners = map[string]*entry{}, map[types.NamespacedName]string{}
	}
	if before, ok := r.owners[owner]; ok {
		if before == id {
			return r.entries[id]
		}
		r.release(before)
	}
	e, ok := r.entries[id]
	if !ok {
		e = &entry{}
		r.entries[id] = e
	}
	e.owners++
	r.owners[owner] = id
	return e
}

// release must be called with r.mu held.
func (r *Registry) release(id string) {
	e := r.entries[id]
	e.owners--
	if e.owners > 0 {
		return
	}
	delete(r.entries, id)
	go e.close() // another owner may be creating the connection, and close waits for that
}

func (e *entry) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if store := cmp.Or(e.connection.Store, e.connection.Last); store != nil {
		store.Close()
	}
}

// fingerprint returns a short hash of the parts. The hash is short because the schedule keeps a
// fingerprint for every bucket.
func fingerprint(parts ...string) string {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part))
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// Forget releases the owner's connection.
func (r *Registry) Forget(owner types.NamespacedName) {
	r.Refs.Want(owner)
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, ok := r.owners[owner]; ok {
		delete(r.owners, owner)
		r.release(id)
	}
}

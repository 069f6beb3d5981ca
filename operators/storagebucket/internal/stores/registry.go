package stores

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/refs"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

// ErrNotYet means that it is not known yet in which version the objects exist
// that a location refers to. The owner is called again when it is.
var ErrNotYet = errors.New("what the store refers to is not known yet")

// Registry keeps one connection for each location somebody uses. It is safe
// for concurrent use.
type Registry struct {
	// Reader reads Secrets and ConfigMaps, from the API server.
	Reader client.Reader
	// Refs says in which version they exist.
	Refs *refs.Watcher
	// Options of every connection.
	Options Options

	mu      sync.Mutex
	entries map[string]*entry
	owners  map[types.NamespacedName]string
}

// entry is a connection and who uses it.
type entry struct {
	owners int

	// mu has one of several owners make the connection.
	mu         sync.Mutex
	versions   string
	connection Connection
}

// Connection is what became of a location.
type Connection struct {
	// Store is nil when there is a Problem.
	Store *s3store.Store
	// Problem is what a person has to mend.
	Problem *s3store.Error
	// Inputs changes whenever the connection was made anew.
	Inputs string
}

// Connect returns the owner's connection, and makes it anew when the location
// or what it refers to has changed. It returns ErrNotYet until that is known.
func (r *Registry) Connect(ctx context.Context, owner types.NamespacedName, l Location) (Connection, error) {
	r.Refs.Want(owner, l.Refs()...)
	versions, known := r.versions(l)
	if !known {
		return Connection{}, ErrNotYet
	}
	e := r.use(owner, l.id())
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.connection.Inputs != "" && e.versions == versions {
		return e.connection, nil
	}
	store, err := Connect(ctx, r.Reader, l, r.Options)
	var problem *s3store.Error
	if err != nil && !errors.As(err, &problem) {
		return Connection{}, err
	}
	if old := e.connection.Store; old != nil {
		old.Close()
	}
	e.versions = versions
	e.connection = Connection{Store: store, Problem: problem, Inputs: fingerprint(l.id(), versions)}
	return e.connection, nil
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

// use notes which location the owner uses, and lets go of the one before.
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

// release needs r.mu.
func (r *Registry) release(id string) {
	e := r.entries[id]
	e.owners--
	if e.owners > 0 {
		return
	}
	delete(r.entries, id)
	go e.close() // which may have to wait for a connection that is being made
}

func (e *entry) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.connection.Store != nil {
		e.connection.Store.Close()
	}
}

// fingerprint is short, because every bucket's place in the plan keeps one.
func fingerprint(parts ...string) string {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part))
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// Forget lets go of the owner's connection.
func (r *Registry) Forget(owner types.NamespacedName) {
	r.Refs.Want(owner)
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, ok := r.owners[owner]; ok {
		delete(r.owners, owner)
		r.release(id)
	}
}

package lab

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// store is the cluster's content as it changes, from the only watch that sees
// everything.
type store struct {
	decoder decoder
	touched broadcast

	mu       sync.Mutex
	refs     map[string]state.Ref // by key: a deletion has no value
	now      state.Snapshot
	revision int64 // all writes up to here are in now and changes
	baseline state.Snapshot
	changes  []state.Change
	began    time.Time
	moved    time.Time // when something last changed that counts
}

func newStore(key []byte) *store {
	hide := func(value string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(value))
		return "hmac:" + hex.EncodeToString(mac.Sum(nil)[:8])
	}
	return &store{decoder: newDecoder(hide), refs: map[string]state.Ref{}, now: state.Snapshot{}}
}

// take is what controlplane.Plane.Follow passes to.
func (s *store) take(revision int64, commits []storage.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, commit := range commits {
		s.commit(commit)
	}
	s.revision = revision
	s.touched.wake()
}

func (s *store) commit(commit storage.Commit) {
	ref, known := s.refs[commit.Key]
	change := state.Change{Revision: commit.Revision, At: time.Since(s.began), Ref: ref, Before: s.now[ref], Op: state.Deleted}
	if commit.Value != nil {
		object, err := s.decoder.object(commit.Value)
		if err != nil {
			// Keys that hold no object, such as ranges of ports.
			return
		}
		stamp(object, commit.Revision)
		change.After, change.Op = object, state.Updated
		if !known {
			change.Ref, change.Op = refOf(object), state.Created
			s.refs[commit.Key] = change.Ref
		}
		s.now[change.Ref] = object
	} else {
		if !known {
			return
		}
		delete(s.refs, commit.Key)
		delete(s.now, ref)
	}
	s.changes = append(s.changes, change)
	if counts(change.Ref) {
		s.moved = time.Now()
	}
}

// stamp adds the version, which the store keeps beside the value.
func stamp(object state.Object, revision int64) {
	u := unstructured.Unstructured{Object: object}
	u.SetResourceVersion(formatRevision(revision))
}

func refOf(object state.Object) state.Ref {
	u := unstructured.Unstructured{Object: object}
	return state.Ref{GroupKind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// counts says whether a change of this object keeps a world from being at rest.
// Heartbeats and notes do not.
func counts(ref state.Ref) bool {
	switch ref.Kind {
	case "Event", "Lease", "Node":
		return false
	}
	return true
}

// begin starts a new history.
func (s *store) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.moved = time.Now(), time.Now()
	s.baseline, s.changes = maps.Clone(s.now), nil
}

// since is when the history began.
func (s *store) since() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// history is what was written since begin.
func (s *store) history() state.History {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state.History{Baseline: s.baseline, Changes: s.changes[:len(s.changes):len(s.changes)]}
}

// seen is the revision up to which everything is known, and the time of the last
// change that counts.
func (s *store) seen() (revision int64, moved time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, s.moved
}

// find returns the objects of now that match.
func (s *store) find(match func(state.Ref, state.Object) bool) map[state.Ref]state.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[state.Ref]state.Object{}
	for ref, object := range s.now {
		if match(ref, object) {
			found[ref] = object
		}
	}
	return found
}

// broadcast wakes all who wait.
type broadcast struct {
	mu sync.Mutex
	c  chan struct{}
}

// next is closed at the next wake.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}

package lab

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/broadcast"
	"github.com/koboshi-dev/koboshi/internal/check/exposure"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/stored"
)

// store holds the current content of the cluster and its changes, both from
// controlplane.Plane.Follow, which sees every commit.
type store struct {
	reader  *stored.Reader
	hide    func(value string) string
	touched broadcast.Signal

	mu       sync.Mutex
	now      state.Snapshot
	revision int64 // now and changes include all writes up to this revision
	baseline state.Snapshot
	changes  []state.Change
	secrets  exposure.Values // of the Secrets in changes
	began    time.Time
	moved    time.Time // the time of the last change that delays rest
	created  time.Time // the time of the last such change that created an object
	ignoring *state.Mask
}

func newStore(key []byte) *store {
	hide := func(value string) string {
		if state.IsTime(value) {
			return value // not a credential; if it were hidden, no time in the same second could be shown
		}
		scrub.Known.Add(value)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(value))
		return "hmac:" + hex.EncodeToString(mac.Sum(nil)[:8])
	}
	return &store{reader: stored.NewReader(), hide: hide, now: state.Snapshot{}}
}

// take receives commits from controlplane.Plane.Follow.
func (s *store) take(revision int64, commits []storage.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, commit := range commits {
		s.commit(commit)
	}
	s.revision = revision
	s.touched.Fire()
}

func (s *store) commit(commit storage.Commit) {
	read, ok := s.reader.Read(commit.Key, commit.Value, commit.Revision)
	if !ok {
		return
	}
	ref := state.Ref(read.Identity)
	change := state.Change{Revision: commit.Revision, At: time.Since(s.began), Ref: ref, Before: s.now[ref], Op: state.Deleted}
	if read.Object != nil {
		scrub.Known.Name(ref.Name)
		s.secrets.Add(ref, read.Object)
		hideSecret(ref, read.Object, s.hide)
		change.After, change.Op = read.Object, state.Updated
		if read.Created {
			change.Op = state.Created
		}
		s.now[ref] = read.Object
	} else {
		delete(s.now, ref)
	}
	s.changes = append(s.changes, change)
	if delaysRest(&change) && !s.ignoring.OnlyIgnored(&change) {
		if s.moved = time.Now(); change.Op == state.Created {
			s.created = s.moved
		}
	}
}

// hideSecret hides the values of a Secret, including those in the annotation that kubectl apply
// adds, so that nothing downstream can leak them.
func hideSecret(ref state.Ref, object state.Object, hide func(string) string) {
	if ref.GroupKind != (schema.GroupKind{Kind: "Secret"}) {
		return
	}
	data, _ := object["data"].(map[string]any)
	for key, value := range data {
		text, _ := value.(string)
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(plain)
		}
		data[key] = hide(text)
	}
	u := unstructured.Unstructured{Object: object}
	if annotations := u.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		annotations[corev1.LastAppliedConfigAnnotation] = hide(annotations[corev1.LastAppliedConfigAnnotation])
		u.SetAnnotations(annotations)
	}
}

// delaysRest reports whether a change keeps the world from being at rest. Changes of bookkeeping
// objects, such as heartbeats, do not count. A Lease with an owner may be a product of the
// controller, so all its changes count except renewals.
func delaysRest(c *state.Change) bool {
	object := c.After
	if object == nil {
		object = c.Before
	}
	if state.IsOwnedLease(c.Ref, object) {
		return !c.Renews()
	}
	return !request.IsBookkeepingObject(c.Ref.GroupKind, object)
}

// begin starts a new history. Its times are measured from began, as those of the trace are: a write
// could otherwise seem to be older than its request, and would have no author. A change that concerns
// only ignored fields does not delay rest.
func (s *store) begin(began time.Time, ignore []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignoring = &state.Mask{Configured: ignore}
	s.began, s.moved, s.created = began, time.Now(), time.Time{}
	s.baseline, s.changes, s.secrets = maps.Clone(s.now), nil, exposure.Values{}
}

// exposed returns the places at which values of Secrets became readable since begin.
func (s *store) exposed(manifests []map[string]any, output string) []exposure.Place {
	history := s.History()
	s.mu.Lock()
	secrets := s.secrets
	s.mu.Unlock()
	return secrets.Find(history, manifests, output)
}

// since returns the time at which the history began.
func (s *store) since() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// History returns everything written since begin.
func (s *store) History() state.History {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state.History{Baseline: s.baseline, Changes: s.changes[:len(s.changes):len(s.changes)]}
}

// seen returns the revision up to which all changes are known, and the time of the last
// change that delays rest.
func (s *store) seen() (revision int64, moved time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, s.moved
}

// lastCreated returns the time at which the last object was created, or zero.
func (s *store) lastCreated() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.created
}

// find returns the current objects that match.
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

// Objects returns the current objects.
func (s *store) Objects() map[state.Ref]state.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.now)
}

// Touched returns a channel that is closed at the next write.
func (s *store) Touched() <-chan struct{} { return s.touched.Next() }

package session

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/stored"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// history records the writes of all clients to the plane's store, so that the inspector also has
// objects that the manager does not watch.
type history struct {
	log    *trace.Log
	reader *stored.Reader
	began  bool
	// existed holds the objects that existed when the recording began, until they change. Most of
	// these objects belong to the plane itself and never change.
	existed map[stored.Identity]trace.Commit
}

// recordHistory records until the plane ends.
func (s *Session) recordHistory() {
	if s.o.Recording.Log == nil {
		return
	}
	h := &history{log: s.o.Recording.Log, reader: stored.NewReader(), existed: map[stored.Identity]trace.Commit{}}
	go func() { _ = s.plane.Follow(context.Background(), h.take) }() // it fails only with the plane
}

// take receives commits from controlplane.Plane.Follow.
func (h *history) take(_ int64, commits []storage.Commit) {
	for _, c := range commits {
		if change, ok := h.reader.Read(c.Key, c.Value, c.Revision); ok && recordable(change) {
			h.record(change, len(c.Value))
		}
	}
	h.began = true
}

func (h *history) record(change stored.Change, size int) {
	commit := trace.Commit{
		Revision: change.Revision, Group: change.Group, Kind: change.Kind,
		Namespace: change.Namespace, Name: change.Name, Object: change.Object, Size: size,
	}
	switch {
	case !h.began:
		commit.Op = trace.Existed
		h.existed[change.Identity] = commit
		return
	case change.Object == nil:
		commit.Op = trace.Deleted
	case change.Created:
		commit.Op = trace.Created
	default:
		commit.Op = trace.Updated
	}
	if before, ok := h.existed[change.Identity]; ok {
		h.log.Record(trace.Entry{Commit: &before})
		delete(h.existed, change.Identity)
	}
	h.log.Record(trace.Entry{Commit: &commit})
}

// recordable reports whether a change is of interest. Leases and Nodes are renewed every few
// seconds, which would fill the recording. Events explain what happened to other objects.
func recordable(c stored.Change) bool {
	switch c.GroupKind {
	case schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}:
		return true
	}
	return !request.IsBookkeepingObject(c.GroupKind, c.Object)
}

// Package state models the cluster as the checker sees it: what the store held at
// each revision, and whether two states are equal apart from times, generated names
// and the like.
//
//	History ──At──▶ Snapshot ──Mask.Canonical──▶ World ──Diff──▶ differences
//	                    ▲
//	     Learn: what differs between runs without a fault is masked
package state

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names an object.
type Ref struct {
	schema.GroupKind
	Namespace string
	Name      string
}

// Op is an operation on an object.
type Op string

// The operations.
const (
	Created Op = "created"
	Updated Op = "updated"
	Deleted Op = "deleted"
)

// Change is one committed write.
type Change struct {
	// Revision is the store's, and the resourceVersion of the object.
	Revision int64
	// At is when it was seen, as the time since the start of the run.
	At  time.Duration
	Ref Ref
	Op  Op
	// Before and After are the object before and after the write; nil before a
	// creation and after a deletion.
	Before, After Object
}

// Snapshot holds all objects at one moment.
type Snapshot map[Ref]Object

// History holds every write since a baseline, by any client.
type History struct {
	// Baseline holds the objects that existed at the start, as far as a Change or a
	// reference names them; it is shared and must not be changed.
	Baseline Snapshot
	Changes  []Change
}

// Difference is a field that is not as expected.
type Difference struct {
	// Object is "Kind.group namespace/name", canonical.
	Object string `json:"object"`
	// Path is "spec.replicas"; empty if the whole object is missing or unexpected.
	Path string `json:"path,omitempty"`
	// Want and Got are JSON, shortened; empty if there is no value.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
}

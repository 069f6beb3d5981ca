// Package state models the cluster from the point of view of the checker: the content of the store
// at each revision. The package also compares two states, and ignores differences such as times and
// generated names.
//
//	History ──At──▶ Snapshot ──Mask.Canonical──▶ World ──Diff──▶ differences
//	                    ▲
//	     Learn: differences between runs without a fault are masked
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
	// Revision is the revision of the store, and the resourceVersion of the object.
	Revision int64
	// At is the time since the start of the run at which the change was seen.
	At  time.Duration
	Ref Ref
	Op  Op
	// Before and After are the object before and after the write. Before is nil for a
	// creation, and After is nil for a deletion.
	Before, After Object
}

// Snapshot holds all objects at one moment.
type Snapshot map[Ref]Object

// History holds every write since a baseline, by any client.
type History struct {
	// Baseline holds the objects that existed at the start. The Baseline is shared and must not be
	// changed.
	Baseline Snapshot
	Changes  []Change
}

// Difference is a field or an object that is not as expected.
type Difference struct {
	// Object is the canonical name, "Kind.group namespace/name".
	Object string `json:"object"`
	// Path is the path of the field, such as "spec.replicas". Path is empty if the complete object
	// is missing or unexpected.
	Path string `json:"path,omitempty"`
	// Want and Got are truncated JSON; they are empty if there is no value.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
}

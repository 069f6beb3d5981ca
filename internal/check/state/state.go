// Package state is the cluster as the checker sees it: what the store held at
// each revision, and when two states are the same but for what is never the same
// twice.
//
//	History ──At──▶ Snapshot ──Mask.Canonical──▶ World ──Diff──▶ differences
//	                    ▲
//	     Learn: what differs between runs without a fault is masked
package state

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is an object as JSON has it. Values of Secrets are replaced by hashes
// before they get here.
type Object = map[string]any

// Ref names an object.
type Ref struct {
	schema.GroupKind
	Namespace string
	Name      string
}

// Op is what happened to an object.
type Op string

// What can happen to an object.
const (
	Created Op = "created"
	Updated Op = "updated"
	Deleted Op = "deleted"
)

// Change is one committed write.
type Change struct {
	// Revision is the store's, and the resourceVersion of the object.
	Revision int64
	// At is the time since the start of the run at which it was seen.
	At  time.Duration
	Ref Ref
	Op  Op
	// Before is the object before the write, nil of a creation; After the one
	// after it, nil of a deletion.
	Before, After Object
}

// Snapshot is all objects at one moment.
type Snapshot map[Ref]Object

// History is all that was written since a baseline, by whomever.
type History struct {
	// Baseline holds what was there at the start, in so far as a Change or a
	// reference names it; it is shared and must not be changed.
	Baseline Snapshot
	Changes  []Change
}

// Difference is a field that is not as it should be.
type Difference struct {
	// Object is "Kind.group namespace/name", canonical.
	Object string `json:"object"`
	// Path is "spec.replicas"; empty if the whole object is missing or too much.
	Path string `json:"path,omitempty"`
	// Want and Got are JSON, shortened; empty if there is nothing.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
}

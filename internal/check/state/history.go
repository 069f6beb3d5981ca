package state

import (
	"reflect"
	"slices"
	"strings"
)

// Mark is the prefix of the annotations, labels and finalizers that the checker itself
// adds to objects. These are never compared.
const Mark = "check.koboshi.dev/"

// At returns the objects that differ between the Baseline and the state at a revision. An object of
// the Baseline that is gone has a nil Object. At omits objects that differ from the Baseline only
// in bookkeeping fields.
func (h History) At(revision int64) Snapshot {
	snapshot := Snapshot{}
	for _, c := range h.Changes {
		if c.Revision > revision {
			continue
		}
		switch _, known := h.Baseline[c.Ref]; {
		case c.Op != Deleted:
			snapshot[c.Ref] = c.After
		case known:
			snapshot[c.Ref] = nil
		default:
			delete(snapshot, c.Ref)
		}
	}
	for ref, object := range snapshot {
		if before, known := h.Baseline[ref]; known && object != nil && sameButBookkeeping(before, object) {
			delete(snapshot, ref)
		}
	}
	return snapshot
}

// Living returns every object that existed at the revision, including unchanged objects of
// the Baseline.
func (h History) Living(revision int64) Snapshot {
	living := Snapshot{}
	for ref, object := range h.Baseline {
		living[ref] = object
	}
	for _, c := range h.Changes {
		switch {
		case c.Revision > revision:
		case c.Op == Deleted:
			delete(living, c.Ref)
		default:
			living[c.Ref] = c.After
		}
	}
	return living
}

// Between returns the changes after one revision, up to and including another revision.
func (h History) Between(after, upTo int64) []Change {
	var changes []Change
	for _, c := range h.Changes {
		if c.Revision > after && c.Revision <= upTo {
			changes = append(changes, c)
		}
	}
	return changes
}

// Touched returns the history with a Baseline that is reduced to the objects that changed.
func (h History) Touched() History {
	touched := History{Baseline: Snapshot{}, Changes: h.Changes}
	for _, c := range h.Changes {
		if object, known := h.Baseline[c.Ref]; known {
			touched.Baseline[c.Ref] = object
		}
	}
	return touched
}

// Last returns the revision of the last change.
func (h History) Last() int64 {
	var last int64
	for _, c := range h.Changes {
		last = max(last, c.Revision)
	}
	return last
}

// Effective reports whether the write changed anything except the marks that the checker
// sets and bookkeeping fields such as resourceVersion.
func (c Change) Effective() bool {
	return c.Op != Updated || !sameButBookkeeping(c.Before, c.After)
}

// bookkeeping lists the fields of metadata that the server maintains.
var bookkeeping = []string{"resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "selfLink"}

func sameButBookkeeping(a, b Object) bool {
	return reflect.DeepEqual(withoutBookkeeping(a), withoutBookkeeping(b))
}

func withoutBookkeeping(object Object) Object {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		return object
	}
	bare := map[string]any{}
	for key, value := range metadata {
		if slices.Contains(bookkeeping, key) {
			continue
		}
		if value = withoutMarks(key, value); value != nil {
			bare[key] = value
		}
	}
	rest := Object{}
	for key, value := range object {
		rest[key] = value
	}
	rest["metadata"] = bare
	return rest
}

// withoutMarks removes the marks of the checker from annotations, labels and finalizers.
// withoutMarks returns nil if nothing is left.
func withoutMarks(field string, value any) any {
	switch typed := value.(type) {
	case map[string]any:
		if field != "annotations" && field != "labels" {
			return value
		}
		kept := map[string]any{}
		for key, v := range typed {
			if !strings.HasPrefix(key, Mark) {
				kept[key] = v
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		if field != "finalizers" {
			return value
		}
		var kept []any
		for _, v := range typed {
			if s, _ := v.(string); !strings.HasPrefix(s, Mark) {
				kept = append(kept, v)
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	}
	return value
}

package state

import (
	"reflect"
	"slices"
	"strings"
)

// Mark is the prefix of the annotations, labels and finalizers that the checker
// itself puts on objects. They are never compared.
const Mark = "check.koboshi.dev/"

// At is what there was once all changes up to the revision had been written, in
// so far as it is not as in the Baseline: objects that were created or changed,
// and, with a nil Object, those of the Baseline that are gone. An object that is
// again as in the Baseline, but for bookkeeping, is not in it.
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

// Living is everything that was there at the revision, the untouched objects of
// the Baseline too.
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

// Between are the changes after one revision, up to and with another.
func (h History) Between(after, upTo int64) []Change {
	var changes []Change
	for _, c := range h.Changes {
		if c.Revision > after && c.Revision <= upTo {
			changes = append(changes, c)
		}
	}
	return changes
}

// Last is the revision of the last change.
func (h History) Last() int64 {
	var last int64
	for _, c := range h.Changes {
		last = max(last, c.Revision)
	}
	return last
}

// Effective says that the write changed more than bookkeeping: not only the
// resourceVersion, who manages which field since when, or a mark of the checker.
func (c Change) Effective() bool {
	return c.Op != Updated || !sameButBookkeeping(c.Before, c.After)
}

// bookkeeping are the fields of metadata that the server keeps for itself.
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

// withoutMarks takes the checker's marks off the annotations, labels and
// finalizers. It gives nil if nothing is left.
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

// Metadata is a string of an object's metadata, such as its uid.
func Metadata(object Object, field string) string {
	metadata, _ := object["metadata"].(map[string]any)
	s, _ := metadata[field].(string)
	return s
}

// Owner is one owner reference of an object.
type Owner struct {
	APIVersion, Kind, Name, UID string
	Controller                  bool
}

// Group is the owner's API group.
func (o Owner) Group() string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Owners are the owner references of an object.
func Owners(object Object) []Owner {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["ownerReferences"].([]any)
	var owners []Owner
	for _, item := range list {
		ref, _ := item.(map[string]any)
		text := func(key string) string { s, _ := ref[key].(string); return s }
		controller, _ := ref["controller"].(bool)
		owners = append(owners, Owner{text("apiVersion"), text("kind"), text("name"), text("uid"), controller})
	}
	return owners
}

// Finalizers are those of an object.
func Finalizers(object Object) []string {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["finalizers"].([]any)
	var finalizers []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			finalizers = append(finalizers, s)
		}
	}
	return finalizers
}

// MadeUpstream says that an object is made and unmade by one of Kubernetes' own
// controllers: a Pod of a ReplicaSet, a ReplicaSet of a Deployment, and such.
func MadeUpstream(object Object) bool {
	for _, owner := range Owners(object) {
		if !owner.Controller {
			continue
		}
		switch owner.Kind + "." + owner.Group() {
		case "ReplicaSet.apps", "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps",
			"Job.batch", "CronJob.batch", "ReplicationController.", "Service.":
			return true
		}
	}
	return false
}

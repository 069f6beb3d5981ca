package judge

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// foreign finds marks of other clients that the controller removed: a finalizer on any
// object, or an annotation or an entry of managedFields on an object that it did not create
// itself.
func foreign(in *input) []Finding {
	for _, c := range in.run.History.Changes {
		if c.Before == nil || c.Op == state.Created {
			continue
		}
		author := in.remover(c)
		if author == nil {
			continue
		}
		key := in.labels.Of(c.Ref)
		if gone := in.foreignFinalizer(c); gone != "" {
			return []Finding{in.lostMark(c, author, key, "metadata.finalizers", gone,
				"the controller removes another client's finalizer "+gone+" from "+key)}
		}
		if gone := foreignAnnotation(c); gone != "" && !in.madeByController(c) {
			return []Finding{in.lostMark(c, author, key, "metadata.annotations", gone,
				"the controller removes another client's annotation "+gone+" from "+key)}
		}
		if overwrites(c) && !in.madeByController(c) {
			return []Finding{in.lostMark(c, author, key, "metadata.managedFields", fault.OtherClient,
				"the controller overwrites another client's write of "+key+" with an older version")}
		}
	}
	return nil
}

func (in *input) lostMark(c state.Change, author *trace.Entry, key, path, gone, outcome string) Finding {
	f := in.finding(Diverged, in.stepAt(c.Revision), outcome, []state.Difference{{Object: key, Path: path, Want: `"` + gone + `"`}})
	f.LastAction = in.request(author.Call)
	return f
}

// remover returns the controller's request that caused a change. If an object was deleted
// because its last finalizer was removed, no answer contains the version of the deletion,
// so remover returns the update that was in progress when the object was deleted.
func (in *input) remover(c state.Change) *trace.Entry {
	if c.Op == state.Updated {
		return in.authors[c.Revision]
	}
	if !c.Before.Deleting() {
		return nil
	}
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if !isWork(e) || !succeeded(e) || e.Call.Verb != "update" && e.Call.Verb != "patch" || e.Call.Target.Subresource != "" {
			continue
		}
		t := e.Call.Target
		if t.Name == c.Ref.Name && t.Namespace == c.Ref.Namespace && t.Group == c.Ref.Group &&
			e.At-e.Call.Took <= c.At && c.At <= e.At+atOnce && without(e.Call, c.Before) {
			return e
		}
	}
	return nil
}

// without reports whether the answer to a request shows the object without finalizers.
func without(call *trace.Call, before state.Object) bool {
	answer, err := call.ResponseObject()
	if err != nil || answer == nil {
		return false
	}
	after := state.Object(answer)
	return after.Metadata("uid") == before.Metadata("uid") && len(after.Finalizers()) == 0
}

// foreignFinalizer returns a finalizer that a change removed, if the checker or a
// manifest of the scenario had added it.
func (in *input) foreignFinalizer(c state.Change) string {
	var left []string
	if c.Op == state.Updated {
		left = c.After.Finalizers()
	}
	for _, f := range c.Before.Finalizers() {
		if !slices.Contains(left, f) && (strings.HasPrefix(f, state.Mark) || in.ofManifest(c.Ref, f)) {
			return f
		}
	}
	return ""
}

// ofManifest reports whether a manifest of the scenario adds a finalizer to the object,
// but the controller never adds it.
func (in *input) ofManifest(ref state.Ref, finalizer string) bool {
	for _, s := range in.ref.Scenario.Steps {
		for _, m := range s.Apply {
			if state.Object(m.Object).Metadata("name") == ref.Name && slices.Contains(state.Object(m.Object).Finalizers(), finalizer) {
				return !in.everAdds(finalizer)
			}
		}
	}
	return false
}

// everAdds reports whether a request of the controller names the finalizer, which means
// that the finalizer belongs to the controller.
func (in *input) everAdds(finalizer string) bool {
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if !isWork(e) {
			continue
		}
		body, err := e.Call.RequestObject()
		if text, _ := json.Marshal(body); err != nil || strings.Contains(string(text), finalizer) {
			return true // a body that cannot be read may name it, too
		}
	}
	return false
}

func foreignAnnotation(c state.Change) string {
	if c.Op != state.Updated {
		return ""
	}
	before, after := c.Before.Annotations(), c.After.Annotations()
	for _, key := range slices.Sorted(keys(before)) {
		if _, kept := after[key]; !kept && strings.HasPrefix(key, state.Mark) {
			return key
		}
	}
	return ""
}

// overwrites reports whether a change removed the entry of managedFields that the fault
// Conflict had added. An update that is based on the current version keeps the entry, and so
// does an update without managedFields.
func overwrites(c state.Change) bool {
	return c.Op == state.Updated && signed(c.Before) && !signed(c.After)
}

func signed(object state.Object) bool {
	metadata, _ := object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	return slices.ContainsFunc(entries, func(e any) bool {
		entry, _ := e.(map[string]any)
		return entry["manager"] == fault.OtherClient && entry["operation"] == "Apply"
	})
}

// madeByController reports whether the controller or upstream's controllers created this object.
// madeByController also returns true if the creation is not in the history, because one of these
// controllers may have created the object.
func (in *input) madeByController(c state.Change) bool {
	uid := c.Before.Metadata("uid")
	for _, other := range in.run.History.Changes {
		if other.Op == state.Created && other.After.Metadata("uid") == uid {
			return in.authors[other.Revision] != nil || other.After.MadeUpstream()
		}
	}
	return true
}

// stepAt returns the name of the step to which a revision belongs.
func (in *input) stepAt(revision int64) string {
	for _, s := range in.steps {
		if revision <= s.end {
			return s.Name
		}
	}
	if last := in.last(); last != nil {
		return last.Name
	}
	for i, s := range in.run.Steps { // without a reference, no step is judged
		if revision <= end(in.run, i) {
			return s.Name
		}
	}
	return ""
}

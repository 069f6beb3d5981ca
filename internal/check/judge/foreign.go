package judge

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// foreign finds marks of somebody else that the controller took off: a finalizer
// from any object, an annotation from one that it did not make itself.
func foreign(in *input) []Finding {
	for _, c := range in.run.History.Changes {
		if c.Before == nil || c.Op == state.Created {
			continue
		}
		author := in.takerOff(c)
		if author == nil {
			continue
		}
		key := in.labels.Of(c.Ref)
		if gone := in.foreignFinalizer(c); gone != "" {
			return []Finding{in.lostMark(c, author, key, "metadata.finalizers", gone,
				"it takes off "+key+" the finalizer "+gone+", which is somebody else's")}
		}
		if gone := foreignAnnotation(c); gone != "" && !in.madeByController(c) {
			return []Finding{in.lostMark(c, author, key, "metadata.annotations", gone,
				"it takes off "+key+" the annotation "+gone+", which is somebody else's")}
		}
	}
	return nil
}

func (in *input) lostMark(c state.Change, author *trace.Entry, key, path, gone, outcome string) Finding {
	f := in.finding(Diverged, in.stepAt(c.Revision), outcome, []state.Difference{{Object: key, Path: path, Want: `"` + gone + `"`}})
	f.LastAction = in.request(author.Call)
	return f
}

// takerOff is the controller's request that made a change. A change that deletes
// an object because its last finalizer went has no version of its own in the
// answer; then it is the update that was under way.
func (in *input) takerOff(c state.Change) *trace.Entry {
	if c.Op == state.Updated {
		return in.authors[c.Revision]
	}
	if state.Metadata(c.Before, "deletionTimestamp") == "" {
		return nil
	}
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if !isWrite(e) || !succeeded(e) || e.Call.Verb != "update" && e.Call.Verb != "patch" || e.Call.Target.Subresource != "" {
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

// without says that the answer of a request is the object without any finalizer.
func without(call *trace.Call, before state.Object) bool {
	answer, err := call.ResponseObject()
	if err != nil || answer == nil {
		return false
	}
	return state.Metadata(answer, "uid") == state.Metadata(before, "uid") && len(state.Finalizers(answer)) == 0
}

// foreignFinalizer is a finalizer of the checker, or one that came with the
// scenario's own manifests, which a change took off.
func (in *input) foreignFinalizer(c state.Change) string {
	var left []string
	if c.Op == state.Updated {
		left = state.Finalizers(c.After)
	}
	for _, f := range state.Finalizers(c.Before) {
		if !slices.Contains(left, f) && (strings.HasPrefix(f, state.Mark) || in.ofManifest(c.Ref, f)) {
			return f
		}
	}
	return ""
}

// ofManifest says that a manifest of the scenario puts a finalizer on the object,
// and that the controller never puts it there itself.
func (in *input) ofManifest(ref state.Ref, finalizer string) bool {
	for _, s := range in.ref.Scenario.Steps {
		for _, m := range s.Apply {
			if state.Metadata(m.Object, "name") == ref.Name && slices.Contains(state.Finalizers(m.Object), finalizer) {
				return !in.everAdds(finalizer)
			}
		}
	}
	return false
}

// everAdds says that a request of the controller names the finalizer: then it is
// its own.
func (in *input) everAdds(finalizer string) bool {
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if !isWrite(e) {
			continue
		}
		body, err := e.Call.RequestObject()
		if text, _ := json.Marshal(body); err != nil || strings.Contains(string(text), finalizer) {
			return true // of a body that cannot be read nothing is known
		}
	}
	return false
}

func foreignAnnotation(c state.Change) string {
	if c.Op != state.Updated {
		return ""
	}
	before, after := annotations(c.Before), annotations(c.After)
	for _, key := range slices.Sorted(keys(before)) {
		if _, kept := after[key]; !kept && strings.HasPrefix(key, state.Mark) {
			return key
		}
	}
	return ""
}

func annotations(object state.Object) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	a, _ := metadata["annotations"].(map[string]any)
	return a
}

// madeByController says that the controller created the object, in this life of
// it, or could have: its creation is not in the history.
func (in *input) madeByController(c state.Change) bool {
	uid := state.Metadata(c.Before, "uid")
	for _, other := range in.run.History.Changes {
		if other.Op == state.Created && state.Metadata(other.After, "uid") == uid {
			return in.authors[other.Revision] != nil || state.MadeUpstream(other.After)
		}
	}
	return true
}

// stepAt is the name of the step to which a revision belongs.
func (in *input) stepAt(revision int64) string {
	for _, s := range in.steps {
		if revision <= s.end {
			return s.Name
		}
	}
	if last := in.last(); last != nil {
		return last.Name
	}
	return ""
}

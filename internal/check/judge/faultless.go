package judge

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// Faultless says what is wrong without any fault. The reference may be nil:
// then the runs could not be compared, and only what one run shows alone is found.
func Faultless(r *Reference, runs []*evidence.Run, s *subject.Subject) []Finding {
	learnt := r
	if r == nil {
		name := ""
		if len(runs) > 0 {
			name = runs[0].Scenario
		}
		learnt = &Reference{Scenario: &scenario.Scenario{Name: name}}
	}
	var inputs []*input
	for _, run := range runs {
		inputs = append(inputs, newInput(learnt, run, s))
	}
	var findings []Finding
	for _, ask := range []func([]*input) []Finding{
		crashesAlone,   // it panics, or ends by itself
		loopsAlone,     // it writes for ever
		expectedAlone,  // what the scenario expects does not hold
		badOwnersAlone, // an owner cannot be one
	} {
		findings = append(findings, ask(inputs)...)
	}
	if r != nil {
		findings = append(findings, pathDependent(r, inputs)...)
		findings = append(findings, leftOver(inputs)...)
	}
	missing, _ := Permissions(s, runs)
	return append(findings, missing...)
}

func crashesAlone(inputs []*input) []Finding {
	var ended []Finding
	for _, in := range inputs {
		if found := panics(in); found != nil {
			return found
		}
		ended = append(ended, exited(in)...)
	}
	// Once may be the machine's doing.
	if len(ended) < 2 {
		return nil
	}
	return ended[:1]
}

func loopsAlone(inputs []*input) []Finding {
	var findings []Finding
	for _, in := range inputs {
		for i, s := range in.run.Steps {
			found := idleLoops(in.ref.Mask, in.run, s)
			why := "although there is nothing to do"
			if l, ok := restlessLoop(in.ref.Mask, in.labels, in.run, in.run.Steps[i]); ok && s.Restless {
				found, why = append(found, l), "and does not come to rest"
			}
			for _, l := range found {
				if !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Sentence, "writes "+l.what+" ") }) {
					findings = append(findings, in.loop(s.Name, l, why))
				}
			}
		}
	}
	return findings
}

// expectedAlone are expectations that fail in every run.
func expectedAlone(inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	for i, s := range inputs[0].run.Steps {
		all := len(s.Failed) > 0
		for _, in := range inputs[1:] {
			all = all && i < len(in.run.Steps) && len(in.run.Steps[i].Failed) > 0
		}
		if all {
			return []Finding{inputs[0].finding(Diverged, s.Name, "also without a fault, what the scenario expects does not hold: "+s.Failed[0], nil)}
		}
	}
	return nil
}

func badOwnersAlone(inputs []*input) []Finding {
	var findings []Finding
	for _, in := range inputs {
		for i, s := range in.run.Steps {
			if key, why := in.badOwner(end(in.run, i)); key != "" {
				findings = append(findings, in.finding(Diverged, s.Name, key+" "+why+": the garbage collector will delete it",
					[]state.Difference{{Object: key, Path: "metadata.ownerReferences"}}))
				break
			}
		}
	}
	if len(findings) < len(inputs) {
		return nil
	}
	return findings[:min(1, len(findings))]
}

// pathDependent compares steps that ought to lead to the same. Numbers in a status
// that only ever grow are counters, and depend on the way by their nature.
func pathDependent(r *Reference, inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	var findings []Finding
	for _, s := range r.Scenario.Steps {
		earlier, later := r.find(s.SameAs), r.find(s.Name)
		if s.SameAs == "" || earlier == nil || later == nil {
			continue
		}
		declared := inputs[0].declared(s.Name)
		differences := slices.DeleteFunc(earlier.World.Diff(later.World), func(d state.Difference) bool {
			return counter(d) || declared[d.Object] && isContent(d.Path)
		})
		if len(differences) == 0 {
			continue
		}
		findings = append(findings, inputs[0].finding(PathDependent, s.Name,
			"after step "+s.Name+" all should be as after step "+s.SameAs+": "+outcome(differences, false), differences))
	}
	return findings
}

// declared are the objects of which somebody else than the controller changed the
// content in a step: how that is then, and how it is spelt, is theirs to say. A
// client writes 60s back as 1m0s, and the next declaration says 60s again.
func (in *input) declared(name string) map[string]bool {
	declared := map[string]bool{}
	for i, s := range in.run.Steps {
		if s.Name != name {
			continue
		}
		for _, c := range in.run.History.Changes {
			if c.Revision > s.Began && c.Revision <= end(in.run, i) && in.authors[c.Revision] == nil && !reflect.DeepEqual(content(c.Before), content(c.After)) {
				declared[in.labels.Of(c.Ref)] = true
			}
		}
	}
	return declared
}

func isContent(path string) bool {
	return !strings.HasPrefix(path, "status") && !strings.HasPrefix(path, "metadata")
}

// content is what an object is about, without what the server and reports say.
func content(object state.Object) state.Object {
	object = maps.Clone(object)
	delete(object, "metadata")
	delete(object, "status")
	return object
}

func counter(d state.Difference) bool {
	var want, got float64
	return strings.HasPrefix(d.Path, "status.") && json.Unmarshal([]byte(d.Want), &want) == nil &&
		json.Unmarshal([]byte(d.Got), &got) == nil && got > want && want > 0
}

// leftOver finds what the controller made for a resource and left after the
// resource had been deleted, in all runs.
func leftOver(inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	in := inputs[0]
	i := in.finalDeletion()
	if i < 0 {
		return nil
	}
	left := in.orphans(i)
	for _, other := range inputs[1:] {
		theirs := other.orphans(i)
		left = slices.DeleteFunc(left, func(key string) bool { return !slices.Contains(theirs, key) })
	}
	if len(left) == 0 {
		return nil
	}
	var differences []state.Difference
	for _, key := range left {
		differences = append(differences, state.Difference{Object: key, Got: `"there"`})
	}
	return []Finding{in.finding(Leak, in.run.Steps[i].Name, "also without a fault, "+outcome(differences, true)+" after the deletion", differences)}
}

// finalDeletion is the index of the last step of the run if after it nothing is
// made any more, and -1 otherwise; orphans on purpose are no leak.
func (in *input) finalDeletion() int {
	for i := len(in.run.Steps) - 1; i >= 0; i-- {
		for _, s := range in.ref.Scenario.Steps {
			if s.Name != in.run.Steps[i].Name {
				continue
			}
			if s.Delete != nil && s.Delete.Propagation != "Orphan" && !s.Delete.Keep {
				return i
			}
			if len(s.Apply) > 0 || s.Patch != nil || s.Scale != nil || len(s.Run) > 0 || s.Delete != nil {
				return -1
			}
		}
	}
	return -1
}

// orphans are objects that the controller created and that are still there after
// the deletion of what they speak of.
func (in *input) orphans(i int) []string {
	deleted := in.deletedBy(in.run.Steps[i].Name)
	if deleted == nil || keeps(deleted) {
		return nil
	}
	revision := end(in.run, i)
	living := in.run.History.Living(revision)
	if in.othersLive(deleted, living) {
		return nil
	}
	var left []string
	for _, c := range in.run.History.Changes {
		object := living[c.Ref]
		key := in.labels.Of(c.Ref)
		if c.Op != state.Created || c.Revision > revision || object == nil || in.authors[c.Revision] == nil ||
			state.Metadata(object, "uid") != state.Metadata(c.After, "uid") || !in.ref.Mask.Counts(c, key) {
			continue
		}
		if speaksOf(object, deleted) || speaksOf(deleted, object) {
			left = append(left, key)
		}
	}
	sort.Strings(left)
	return slices.Compact(left)
}

// deletedBy is the last state of the object that a step deletes; nil if it is
// still there, or never was.
func (in *input) deletedBy(step string) state.Object {
	for _, s := range in.ref.Scenario.Steps {
		if s.Name != step || s.Delete == nil {
			continue
		}
		var last state.Object
		for _, c := range in.run.History.Changes {
			if c.Ref.Kind == s.Delete.Kind && c.Ref.Name == s.Delete.Name && (s.Delete.Namespace == "" || c.Ref.Namespace == s.Delete.Namespace) {
				if c.Op == state.Deleted {
					last = c.Before
				} else {
					last = nil
				}
			}
		}
		return last
	}
	return nil
}

// othersLive says that resources of the same kind are left: what is there may be
// theirs.
func (in *input) othersLive(deleted state.Object, living state.Snapshot) bool {
	for _, object := range living {
		if object["kind"] == deleted["kind"] && object["apiVersion"] == deleted["apiVersion"] {
			return true
		}
	}
	return false
}

var keeping = regexp.MustCompile(`(?i)^(retain|orphan|keep|donotdelete|none)$`)

// keeps says that the resource asked for things to be left: a policy of it says
// so.
func keeps(object state.Object) bool {
	spec, _ := object["spec"].(map[string]any)
	return saysKeep(spec)
}

func saysKeep(v any) bool {
	switch typed := v.(type) {
	case map[string]any:
		for _, item := range typed {
			if saysKeep(item) {
				return true
			}
		}
	case []any:
		for _, item := range typed {
			if saysKeep(item) {
				return true
			}
		}
	case string:
		return keeping.MatchString(typed)
	}
	return false
}

// speaksOf says that an object names another one, as a whole word.
func speaksOf(object, other state.Object) bool {
	name := state.Metadata(other, "name")
	if name == "" {
		return false
	}
	metadata, _ := object["metadata"].(map[string]any)
	text, err := json.Marshal([]any{metadata["name"], metadata["labels"], metadata["annotations"], metadata["ownerReferences"], object["spec"], object["data"]})
	if err != nil {
		return false
	}
	word, err := regexp.Compile(`(^|[^a-z0-9])` + regexp.QuoteMeta(name) + `($|[^a-z0-9])`)
	return err == nil && word.Match(text)
}

package judge

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// A step with `spares` creates or deletes one resource while another one exists. What the controller
// made for each resource alone, in an earlier step, is the standard:
//
//	first: apply A   ─┐ A's objects, alone
//	gone:  delete A   │
//	other: apply B   ─┼┐ B's objects, alone
//	both:  apply A    ││ spares [first, other]: both sets exist side by side
//	later: delete A  ─┘┘ spares [other]: B's objects are as they were
//
// Only objects that the controller created in the named step count. An object that was left over from
// an earlier step may belong to any resource.

// harm describes an object that a step has changed although the step lists it under spares.
type harm struct {
	how         string // a sentence in which the two %s stand for the object and for the other resource
	other       string // the resource to which the object belongs
	differences []state.Difference
}

// sparedAlone finds objects that the creation or the deletion of one resource takes from another one, in
// every run. It reports each kind of object once: what happens to the children of the one resource usually
// happens to the children of the other as well.
func sparedAlone(r *Reference, inputs []*input) (findings []Finding) {
	if len(inputs) == 0 {
		return nil
	}
	shown := map[string]bool{}
	for _, s := range r.Scenario.Steps {
		if len(s.Spares) == 0 || r.find(s.Name) == nil {
			continue
		}
		found := inputs[0].harms(s)
		for _, other := range inputs[1:] {
			theirs := other.harms(s)
			maps.DeleteFunc(found, func(key string, h harm) bool { return theirs[key].how != h.how })
		}
		maps.DeleteFunc(found, func(key string, _ harm) bool { return shown[kindIn(key)] })
		keys := slices.Sorted(maps.Keys(found))
		if len(keys) == 0 {
			continue
		}
		var differences []state.Difference
		for _, key := range keys {
			differences = append(differences, found[key].differences...)
			shown[kindIn(key)] = true
		}
		first := found[keys[0]]
		findings = append(findings, inputs[0].finding(Collision, s.Name, fmt.Sprintf(first.how, actedOn(s), keys[0], first.other), differences))
	}
	return findings
}

// kindIn returns the kind in a canonical name.
func kindIn(key string) string {
	kind, _, _ := strings.Cut(key, " ")
	return kind
}

// actedOn names the resource that a step creates or deletes.
func actedOn(s scenario.Step) string {
	if s.Delete != nil {
		return s.Delete.String()
	}
	for _, m := range s.Apply {
		return objectName(m.Object)
	}
	return ""
}

// harms returns the harm that a step does, by the canonical name of the object.
func (in *input) harms(s scenario.Step) map[string]harm {
	found := map[string]harm{}
	at := in.indexOf(s.Name)
	if at < 1 || s.Apply != nil && in.reports(s) {
		return found
	}
	before, after := in.rested(in.run.Steps[at-1].Name), in.rested(s.Name)
	declared := in.declared(s.Name)
	for _, earlier := range s.Spares {
		alone, other := in.rested(earlier), in.appliedIn(earlier)
		for key := range in.madeIn(earlier) {
			was, is := len(existing(before.Objects[key])), len(existing(after.Objects[key]))
			switch {
			case is < min(len(existing(alone.Objects[key])), was):
				how := "creating %s removes %s, which %s still needs"
				if s.Delete != nil {
					how = "deleting %s also removes %s, which %s still needs"
				}
				found[key] = harm{how, other, []state.Difference{{Object: key, Want: `"there"`}}}
			case s.Apply != nil && was+is == 0:
				found[key] = harm{"while another resource exists, applying %s does not lead to %s, which the controller makes for %s alone", other,
					[]state.Difference{{Object: key, Want: `"there"`}}}
			case s.Delete != nil && !declared[key]:
				if changed := spoilt(key, alone, before, after); len(changed) > 0 {
					found[key] = harm{"deleting %s also changes %s, which belongs to %s", other, changed}
				}
			}
		}
	}
	if s.Apply != nil {
		in.addShared(s, after, found)
	}
	return found
}

// existing returns the contents of objects that exist. A nil content stands for an object of the
// baseline that is gone.
func existing(contents []any) []any {
	return slices.DeleteFunc(slices.Clone(contents), func(content any) bool { return content == nil })
}

// spoilt returns the fields of an object that were the same alone and before the step, and differ after
// it. A field that already had another value before the step may hold the data of several resources, or
// a value that was free when the resource was created.
func spoilt(key string, alone, before, after state.World) (changed []state.Difference) {
	different := differentFields(key, alone, before)
	for _, d := range differentFields(key, alone, after) {
		if !slices.ContainsFunc(different, func(o state.Difference) bool { return below(d.Path, o.Path) || below(o.Path, d.Path) }) {
			changed = append(changed, d)
		}
	}
	return changed
}

// differentFields returns the differences in the content of the single object with a canonical name. It
// returns nil if there are several such objects.
func differentFields(key string, want, got state.World) []state.Difference {
	if len(want.Objects[key]) != 1 || len(got.Objects[key]) != 1 {
		return nil
	}
	one := func(w state.World) state.World {
		return state.World{Objects: map[string][]any{key: w.Objects[key]}}
	}
	return slices.DeleteFunc(one(want).Diff(one(got)), func(d state.Difference) bool { return d.Path == "" || !isContent(d.Path) })
}

// addShared adds the objects that two resources share although each of them wants another content, if
// the object has exactly the content that one of them wants. An object that combines the data of several
// resources has another content.
func (in *input) addShared(s scenario.Step, after state.World, found map[string]harm) {
	for i, first := range s.Spares {
		for _, second := range s.Spares[i+1:] {
			made := in.madeIn(second)
			for key := range in.madeIn(first) {
				a, b := in.rested(first), in.rested(second)
				if !made[key] || len(differentFields(key, a, b)) == 0 || found[key].how != "" {
					continue
				}
				lost, other := differentFields(key, a, after), in.appliedIn(first)
				if len(lost) == 0 {
					lost, other = differentFields(key, b, after), in.appliedIn(second)
				} else if len(differentFields(key, b, after)) > 0 {
					continue
				}
				if len(lost) > 0 {
					found[key] = harm{"after applying %s, two resources share %s, and it has not the content that %s needs", other, lost}
				}
			}
		}
	}
}

// madeIn returns the canonical names of the objects that the controller created in a step, that exist
// after it, and that no resource names in its spec: two resources that name the same object declare a
// conflict themselves.
func (in *input) madeIn(step string) map[string]bool {
	made := map[string]bool{}
	i := in.indexOf(step)
	if i < 0 {
		return made
	}
	living := in.run.History.At(in.run.Steps[i].Rested)
	for _, c := range in.run.History.Between(in.run.Steps[i].Began, in.run.Steps[i].Rested) {
		if c.Op == state.Created && in.authors[c.Revision] != nil && living[c.Ref].Metadata("uid") == c.After.Metadata("uid") && !in.named(c.Ref) {
			made[in.labels.Of(c.Ref)] = true
		}
	}
	return made
}

// appliedIn names the resources that a step applies.
func (in *input) appliedIn(step string) string {
	var names []string
	for _, s := range in.ref.Scenario.Steps {
		for _, m := range s.Apply {
			if name := objectName(m.Object); s.Name == step && name != "" {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// reports reports whether the controller says, in a status or in a warning, that a resource is not as it
// would be alone. A status that lacks something says nothing.
func (in *input) reports(s scenario.Step) bool {
	after := in.rested(s.Name)
	for _, earlier := range s.Spares {
		alone := in.rested(earlier)
		for key, contents := range after.Objects {
			if !slices.Contains(in.subject.Primary, kindIn(key)) || len(alone.Objects[key]) != len(contents) {
				continue
			}
			different := state.World{Objects: map[string][]any{key: alone.Objects[key]}}.Diff(state.World{Objects: map[string][]any{key: contents}})
			if slices.ContainsFunc(different, func(d state.Difference) bool { return isStatus(d.Path) && d.Got != "" && !counter(d) && !hollow(d) }) {
				return true
			}
		}
	}
	return in.warns(s.Name)
}

// warns reports whether the controller wrote an Event of the type Warning in a step.
func (in *input) warns(step string) bool {
	i := in.indexOf(step)
	until := time.Duration(1<<63 - 1)
	if i+1 < len(in.run.Steps) {
		until = in.run.Steps[i+1].BeganAt
	}
	return slices.ContainsFunc(in.run.Entries, func(e trace.Entry) bool {
		if e.At < in.run.Steps[i].BeganAt || e.At >= until || e.Call == nil || e.Call.Target.Resource != "events" || e.Instance == "" {
			return false
		}
		body, err := e.Call.RequestObject()
		return err == nil && reflect.DeepEqual(body["type"], "Warning")
	})
}

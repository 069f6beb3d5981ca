package scenario

import (
	"maps"
	"slices"
	"strings"
)

// Many controllers panic if a person writes an optional object with nothing in it, because they expect the
// fields in it. So all such objects are added at once before each is tried alone. Only if the controller
// panics, halves of them are tried, until one is left.

// mostBare is the number of groups of a sample. An object and one in it need two groups, and below a
// field that the sample has, mostDepthAbsent levels are explored.
const mostBare = mostDepthAbsent + 1

// fewestBare is the number of objects from which a group takes less time than trials of each.
const fewestBare = 2

// bare makes trials of objects that the sample lacks, for Joint. The API server accepts the trials of each
// group together.
func (p *plot) bare(changes []change) (all []*Trials) {
	var groups [mostBare][]change
	var joint [mostBare]map[string]any
	for _, c := range changes {
		_, had := valueAt(c.from, c.path)
		if value, _ := valueAt(c.to, c.path); c.verb != "empty" || had || !isEmptyObject(value) {
			continue
		}
		for i := range groups {
			if joint[i] == nil {
				joint[i] = p.base
			}
			if to, ok := p.joined(groups[i], joint[i], c); ok {
				groups[i], joint[i] = append(groups[i], c), to
				break
			}
		}
	}
	for _, group := range groups {
		if len(group) >= fewestBare {
			t := p.together(group)
			t.Bare, t.Scenario.Name = true, unused(p.title+"-bare", p.names)
			all = append(all, t)
		}
	}
	return all
}

func isEmptyObject(value any) bool {
	object, is := value.(map[string]any)
	return is && len(object) == 0
}

// joined adds a change to others of the same object. It returns false if one lies in another one, or if the
// API server would refuse them together.
func (p *plot) joined(others []change, object map[string]any, c change) (map[string]any, bool) {
	field := c.field() + "."
	for _, o := range others {
		if other := o.field() + "."; strings.HasPrefix(field, other) || strings.HasPrefix(other, field) {
			return nil, false
		}
	}
	to, ok := with(p.kind.schema, object, c.path, map[string]any{})
	return to, ok && p.kind.refusal(to, p.base) == nil && p.kind.refusal(p.base, to) == nil
}

// Joint returns some of the trials, which must be Bare, in one step. Nothing is changed back.
func (t *Trials) Joint(selected []int) *Trials {
	const step = "joint"
	joint := *t
	joint.Trials = nil
	var merge any
	var patch Patch
	for _, i := range selected {
		one := t.Trials[i]
		at := slices.IndexFunc(t.Scenario.Steps, func(s Step) bool { return s.Name == one.Step })
		patch = *t.Scenario.Steps[at].Patch
		single, _ := fromJSON(patch.Merge)
		merge = combined(merge, single)
		one.Step, one.Then, one.Undo = step, "", ""
		joint.Trials = append(joint.Trials, one)
	}
	patch.Merge = mustJSON(merge)
	joint.Scenario = t.only(t.Scenario.Name, t.Controls, nil)
	joint.Scenario.Steps = append(joint.Scenario.Steps, Step{Name: step, Patch: &patch})
	return &joint
}

// combined returns a merge patch that does what two of the same object do. Each of them replaces a list as a
// whole, and changes fields of its items.
func combined(a, b any) any {
	switch one := a.(type) {
	case nil:
		return b
	case map[string]any:
		other, ok := b.(map[string]any)
		if !ok {
			return a
		}
		both := maps.Clone(one)
		for key, value := range other {
			both[key] = combined(one[key], value)
		}
		return both
	case []any:
		other, ok := b.([]any)
		if !ok || len(one) != len(other) {
			return a
		}
		both := slices.Clone(one)
		for i := range both {
			both[i] = combined(one[i], other[i])
		}
		return both
	}
	return a
}

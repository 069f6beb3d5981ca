package scenario

import (
	"maps"
	"slices"
)

// Many controllers panic if an optional object is set to {}, because they expect fields in it. So all such
// objects are added at once before each is tried alone. If the controller panics, they are halved until few
// are left, which are then added one after the other.

// mostBare is the maximum number of groups of a sample. An object and an object in it need separate groups, and
// mostDepthAbsent levels are explored below a field that the sample has.
const mostBare = mostDepthAbsent + 1

// fewestBare is the size of the smallest group that saves time.
const fewestBare = 2

// bare groups the changes that add an empty object. Each group becomes Trials for Joint, because the API server
// accepts its changes together.
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
	if slices.ContainsFunc(others, func(o change) bool { return nested(o.field(), c.field()) }) {
		return nil, false
	}
	to, ok := with(p.kind.schema, object, c.path, map[string]any{})
	return to, ok && p.kind.refusal(to, p.base) == nil && p.kind.refusal(p.base, to) == nil
}

// Joint returns some of the trials, which must be Bare, in one step. Nothing is changed back.
func (t *Trials) Joint(selected []int) *Trials {
	const step = "joint"
	joint, steps := t.adding(selected)
	for i := range joint.Trials {
		joint.Trials[i].Step = step
	}
	last := steps[len(steps)-1]
	last.Name = step
	joint.Scenario.Steps = append(joint.Scenario.Steps, last)
	return joint
}

// Successive returns some of the trials, which must be Bare, one step after the other. Nothing is changed back, so
// one run is enough to find the first with which the controller crashes.
func (t *Trials) Successive(selected []int) *Trials {
	successive, steps := t.adding(selected)
	successive.Scenario.Steps = append(successive.Scenario.Steps, steps...)
	return successive
}

// JointProof is like Proof, with several fields that are changed in one step, and changed back in one. It returns nil if
// any two of all the changes could affect each other.
func (t *Trials) JointProof(fields []int, known int) *Trials {
	for n, i := range fields {
		for _, other := range append([]int{known}, fields[:n]...) {
			if overlap(t.Trials[i].Field, t.Trials[other].Field) {
				return nil
			}
		}
	}
	const step, then, undo = "joint", "then-joint", undoPrefix + "joint"
	var change, next, back []string
	last := t.Trials[known]
	proof := *t
	proof.Trials = nil
	for _, i := range fields {
		one := t.Trials[i]
		change, back = append(change, one.Step), append(back, one.Undo)
		if one.Then != "" {
			next = append(next, one.Then)
		}
		one.Step, one.Then, one.Undo = step, then, undo
		proof.Trials = append(proof.Trials, one)
	}
	if next == nil {
		for i := range proof.Trials {
			proof.Trials[i].Then = ""
		}
	}
	proof.Scenario = t.only(t.Scenario.Name, t.Controls, nil)
	steps := []Step{t.inOne(step, change)}
	if next != nil {
		steps = append(steps, t.inOne(then, next))
	}
	steps = append(steps, *t.step(last.Step))
	if last.Then != "" {
		steps = append(steps, *t.step(last.Then))
	}
	proof.Scenario.Steps = append(proof.Scenario.Steps, append(steps, t.inOne(undo, back), *t.step(last.Undo))...)
	proof.Trials = append(proof.Trials, last)
	return &proof
}

// inOne returns the patches of several steps in one step.
func (t *Trials) inOne(name string, steps []string) Step {
	var merge any
	for _, other := range steps {
		single, _ := fromJSON(t.step(other).Patch.Merge)
		merge = combined(merge, single)
	}
	step := *t.step(steps[0])
	patch := *step.Patch
	patch.Merge = mustJSON(merge)
	step.Name, step.Patch = name, &patch
	return step
}

// adding returns some of the trials, and a step for each of them that also adds what those before it add.
func (t *Trials) adding(selected []int) (some *Trials, steps []Step) {
	adding := *t
	adding.Trials = nil
	var merge any
	for _, i := range selected {
		one := t.Trials[i]
		at := slices.IndexFunc(t.Scenario.Steps, func(s Step) bool { return s.Name == one.Step })
		step := t.Scenario.Steps[at]
		single, _ := fromJSON(step.Patch.Merge)
		merge = combined(merge, single)
		patch := *step.Patch
		patch.Merge = mustJSON(merge)
		step.Patch = &patch
		steps = append(steps, step)
		one.Then, one.Undo = "", ""
		adding.Trials = append(adding.Trials, one)
	}
	adding.Scenario = t.only(t.Scenario.Name, t.Controls, nil)
	return &adding, steps
}

// combined returns a merge patch with the effect of two patches of the same object. A merge patch replaces a
// whole list, so two versions of a list are combined item by item.
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

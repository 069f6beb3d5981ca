package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Many controllers panic if an optional object is set to {}, or if an optional field is left out, because they expect
// it. So all such changes of a sample are made at once before each is made alone. If the controller panics, they are
// halved until few are left, which are then made one after the other.

// mostBare is the maximum number of groups of one kind of change. An object and an object in it need separate groups, and
// mostDepthAbsent levels are explored below a field that the sample has.
const mostBare = mostDepthAbsent + 1

// fewestBare is the size of the smallest group that saves time.
const fewestBare = 2

// bare groups the changes after which the sample says less than its author or the controller may expect. Each group
// becomes Trials for Joint, because the API server accepts its changes together. Parts of Pods have groups of their own: a
// controller seldom refuses one of them, and then does not get to the others. Groups of outer fields come first, and new
// objects before changed ones, because a slow controller leaves time for a few only.
func (p *plot) bare(changes []change) (all []*Trials) {
	var kinds [][]*group
	for _, kind := range []struct {
		is    func(*change) bool
		ofPod bool
	}{{empties, true}, {empties, false}, {adds, false}, {omits, false}, {omits, true}, {adds, true}} {
		kinds = append(kinds, p.groups(changes, func(c *change) bool { return kind.is(c) && c.isOfPod() == kind.ofPod }))
	}
	for level := range mostBare {
		var fresh, changed []*Trials
		for _, groups := range kinds {
			if some := groups[level].changes; len(some) >= fewestBare {
				t := p.together(some)
				t.Bare, t.Scenario.Name = true, unused(p.title+"-bare", p.names)
				fresh, changed = append(fresh, p.fresh(some)), append(changed, t)
			}
		}
		all = slices.Concat(all, fresh, changed)
	}
	return all
}

// fresh makes trials that create another object with each change, because many controllers read a field only when they
// create a child. The object of the sample is deleted before, because some controllers serve only one of a kind.
func (p *plot) fresh(changes []change) *Trials {
	t := p.noTrials()
	t.Bare = true
	deletion := p.delete("delete")
	deletion.Delete.Keep = true // the other objects need not wait for it
	steps := []Step{p.create(CreateStep), deletion}
	for i, c := range changes {
		ref := p.ref
		ref.Name = fmt.Sprintf("%s-%d", p.ref.Name, i+1)
		trial := Trial{Field: c.field(), Verb: createsWith + c.verb, Step: fmt.Sprintf("%s-%d", CreateStep, i+1)}
		trial.Undo = undoPrefix + trial.Step
		if value, found := valueAt(c.to, c.path); found {
			trial.Value = mustJSON(value)
		}
		steps = append(steps, Step{Name: trial.Step, Apply: []Manifest{{Object: renamed(c.to, ref.Name)}}}, Step{Name: trial.Undo, Delete: &Delete{ObjectRef: ref, Keep: true}})
		t.Trials = append(t.Trials, trial)
	}
	p.add("fresh", "Created again, with fields left empty or left out.", steps...)
	t.Scenario = p.scenarios[len(p.scenarios)-1]
	return t
}

// renamed returns a copy of an object with another name.
func renamed(object map[string]any, name string) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	(&unstructured.Unstructured{Object: copied}).SetName(name)
	return copied
}

// adds reports whether the change adds an empty object that the sample lacks.
func adds(c *change) bool {
	_, had := valueAt(c.from, c.path)
	return !had && leavesEmpty(c)
}

// empties reports whether the change leaves an object in the sample empty.
func empties(c *change) bool {
	_, had := valueAt(c.from, c.path)
	return had && leavesEmpty(c) && !isWhole(c)
}

// omits reports whether the change removes a field.
func omits(c *change) bool { return c.verb == "remove" && !isWhole(c) }

// isWhole reports whether the change affects all fields of a sample, such as one of spec.
func isWhole(c *change) bool { return len(c.path) == 1 }

// isOfPod reports whether the field is a part of a Pod that a controller need not know. Without the template of a volume,
// it often refuses the object.
func (c *change) isOfPod() bool {
	has := func(names *regexp.Regexp) bool {
		return slices.ContainsFunc(c.path, func(part any) bool {
			name, isText := part.(string)
			return isText && names.MatchString(name)
		})
	}
	return has(podFields) && !has(templates)
}

// templates matches the names of fields that hold templates.
var templates = regexp.MustCompile(`(?i)template`)

func leavesEmpty(c *change) bool {
	value, _ := valueAt(c.to, c.path)
	return c.verb == "empty" && isEmptyObject(value)
}

func isEmptyObject(value any) bool {
	object, is := value.(map[string]any)
	return is && len(object) == 0
}

// group is a set of changes that can be made at once, with the object after all of them.
type group struct {
	changes []change
	object  map[string]any
}

// groups divides some of the changes into at most mostBare groups. Changes that fit into none are left out.
func (p *plot) groups(changes []change, some func(*change) bool) []*group {
	all := make([]*group, mostBare)
	for i := range all {
		all[i] = &group{object: p.base}
	}
	for i := range changes {
		if !some(&changes[i]) {
			continue
		}
		for _, g := range all {
			if p.join(g, &changes[i]) {
				break
			}
		}
	}
	return all
}

// join adds a change to a group. It returns false if one of the changes lies in another one, or if the API server would
// refuse them together.
func (p *plot) join(g *group, c *change) bool {
	if slices.ContainsFunc(g.changes, func(o change) bool { return nested(o.field(), c.field()) }) {
		return false
	}
	value, found := valueAt(c.to, c.path)
	if !found {
		value = gone{}
	}
	to, ok := with(p.kind.schema, g.object, c.path, value)
	if !ok || p.kind.refusal(to, nil) != nil || p.kind.refusal(to, p.base) != nil || p.kind.refusal(p.base, to) != nil {
		return false
	}
	g.changes, g.object = append(g.changes, *c), to
	return true
}

// Joint returns some of the trials, which must be Bare, in one step. Nothing is changed back.
func (t *Trials) Joint(selected []int) *Trials {
	const step = "joint"
	if t.isFresh() {
		return t.freshJoint(step, selected)
	}
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
	if t.isFresh() {
		return t.Some(func(i int, _ *Trial) bool { return slices.Contains(selected, i) })
	}
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

// isFresh reports whether each trial creates another object.
func (t *Trials) isFresh() bool { return t.Trials[0].Creates() }

// freshJoint returns trials that create one object with all of their changes.
func (t *Trials) freshJoint(step string, selected []int) *Trials {
	base := t.sample()
	name := (&unstructured.Unstructured{Object: base}).GetName()
	object, fresh := base, *t
	fresh.Trials = nil
	for _, i := range selected {
		one := t.Trials[i]
		object, _ = bothOf(base, object, renamed(t.step(one.Step).Apply[0].Object, name)).(map[string]any)
		one.Step, one.Undo = step, ""
		fresh.Trials = append(fresh.Trials, one)
	}
	fresh.Scenario = t.only(t.Scenario.Name, nil, nil)
	fresh.Scenario.Steps = append(fresh.Scenario.Steps, Step{Name: step, Apply: []Manifest{{Object: renamed(object, name+"-"+step)}}})
	return &fresh
}

// combined returns a merge patch with the effect of two patches of the same object, neither of which changes what the
// other one does.
func combined(a, b any) any {
	one, ok := a.(map[string]any)
	other, okToo := b.(map[string]any)
	switch {
	case a == nil:
		return b
	case !ok || !okToo:
		return a
	}
	both := maps.Clone(one)
	for key, value := range other {
		both[key] = combined(one[key], value)
	}
	return both
}

// adding returns some of the trials, and a step for each of them that also makes the changes of those before it.
func (t *Trials) adding(selected []int) (some *Trials, steps []Step) {
	adding := *t
	adding.Trials = nil
	base := t.sample()
	joint := base
	for _, i := range selected {
		one := t.Trials[i]
		step := *t.step(one.Step)
		single, _ := fromJSON(step.Patch.Merge)
		changed, _ := applied(base, single).(map[string]any)
		joint, _ = bothOf(base, joint, changed).(map[string]any)
		patch := *step.Patch
		patch.Merge = mustJSON(mergePatch(base, joint))
		step.Patch = &patch
		steps = append(steps, step)
		one.Then, one.Undo = "", ""
		adding.Trials = append(adding.Trials, one)
	}
	adding.Scenario = t.only(t.Scenario.Name, t.Controls, nil)
	return &adding, steps
}

// sample returns the object with which the trials begin.
func (t *Trials) sample() map[string]any {
	if create := t.step(CreateStep); len(create.Apply) == 1 {
		return create.Apply[0].Object
	}
	return map[string]any{}
}

// applied returns a value after a merge patch (RFC 7386), and leaves the value as it is.
func applied(value, patch any) any {
	changes, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	before, _ := value.(map[string]any)
	after := map[string]any{}
	maps.Copy(after, before)
	for key, change := range changes {
		if change == nil {
			delete(after, key)
		} else {
			after[key] = applied(before[key], change)
		}
	}
	return after
}

// bothOf returns a value with the changes of two others, neither of which changes what the other one does. The value nil
// stands for a field that is missing. A merge patch replaces a whole list, so two versions of one are merged item by item.
func bothOf(base, one, other any) any {
	if reflect.DeepEqual(base, one) {
		return other
	}
	if reflect.DeepEqual(base, other) {
		return one
	}
	switch first := one.(type) {
	case map[string]any:
		second, _ := other.(map[string]any)
		before, _ := base.(map[string]any)
		both := map[string]any{}
		for _, key := range slices.Concat(sortedKeys(first), sortedKeys(second)) {
			if value := bothOf(before[key], first[key], second[key]); value != nil {
				both[key] = value
			}
		}
		return both
	case []any:
		second, _ := other.([]any)
		before, _ := base.([]any)
		if len(first) != len(second) || len(first) != len(before) {
			return one
		}
		both := slices.Clone(first)
		for i := range both {
			both[i] = bothOf(before[i], first[i], second[i])
		}
		return both
	}
	return one
}

package scenario

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Beside returns trials that show whether the change with number i keeps the controller from its work on
// another resource. A twin of the object gets a change whose effect is known, and loses it again: twice
// before the object is changed, and once while it is. A controller that goes on with its work shows the
// same signs each time, within the time quiet. Beside returns nil if the sample has no twin, or if a
// change is not one of a single object.
func (t *Trials) Beside(i, known int, quiet time.Duration) *Trials {
	change, effect := t.Trials[i], t.Trials[known]
	if t.Twin == nil || change.Creates() || effect.Creates() {
		return nil
	}
	name := (&unstructured.Unstructured{Object: t.Twin}).GetName()
	beside := *t
	beside.Object.Name, beside.Controls, beside.Trials = name, nil, nil
	steps := []Step{*t.step(CreateStep), {Name: "create-beside", Apply: []Manifest{{Object: runtime.DeepCopyJSON(t.Twin)}}}}
	pair := func(n string) (step, undo Step) {
		step, undo = patchOf(*t.step(effect.Step), "beside-"+n, name), patchOf(*t.step(effect.Undo), undoPrefix+"beside-"+n, name)
		beside.Trials = append(beside.Trials, Trial{Field: effect.Field, Verb: effect.Verb, Value: effect.Value, Step: step.Name, Undo: undo.Name})
		return step, undo
	}
	for _, n := range []string{"1", "2"} {
		step, undo := pair(n)
		steps = append(steps, step, undo)
	}
	steps = append(steps, *t.step(change.Step))
	if change.Then != "" {
		steps = append(steps, *t.step(change.Then))
	}
	step, undo := pair("3")
	step.Quiet = Duration(quiet)
	steps = append(steps, step, *t.step(change.Undo), undo)
	s := *t.Scenario
	s.Steps = steps
	beside.Scenario = &s
	return &beside
}

// patchOf returns a copy of a step with a patch, for another object.
func patchOf(step Step, name, object string) Step {
	patch := *step.Patch
	patch.Name = object
	step.Name, step.Patch = name, &patch
	return step
}

// step returns the step with the given name, which must exist.
func (t *Trials) step(name string) *Step {
	i := slices.IndexFunc(t.Scenario.Steps, func(s Step) bool { return s.Name == name })
	return &t.Scenario.Steps[i]
}

// Patiently returns the trial with number i in a scenario of its own, whose change must last for the time
// quiet without any write.
func (t *Trials) Patiently(i int, quiet time.Duration) *Trials {
	alone := t.Some(func(at int, _ *Trial) bool { return at == i })
	last := alone.Trials[0].Step
	if then := alone.Trials[0].Then; then != "" {
		last = then
	}
	step := alone.step(last)
	step.Quiet = max(step.Quiet, Duration(quiet))
	return alone
}

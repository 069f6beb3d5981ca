package judge

import (
	"fmt"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// A scenario can create a resource with the final spec, delete it, create it with another spec, and
// change it to the final one. Then the two final states should be the same:
//
//	changed: apply B ◀──────┐
//	gone:    delete         │ sameAs
//	create:  apply A        │
//	change:  patch A to B ──┘
//
// Some controllers use a field only when they create a child, and intend to. So what the change leaves
// as it was is only a remark. What it changes to a third value, and what it leaves behind although it
// updates the object, is a finding.

// direct returns the step that creates the resource that a step changes, if the state after this step is
// compared with the state that an earlier life of the resource began with. Otherwise it returns "".
func (r *Reference) direct(s scenario.Step) string {
	i := slices.IndexFunc(r.Scenario.Steps, func(o scenario.Step) bool { return o.Name == s.Name })
	if i < 1 || s.Patch == nil {
		return ""
	}
	before := r.Scenario.Steps[i-1]
	if before.Name == s.SameAs || !slices.ContainsFunc(before.Apply, func(m scenario.Manifest) bool {
		return m.Object["kind"] == s.Patch.Kind && state.Object(m.Object).Metadata("name") == s.Patch.Name
	}) {
		return ""
	}
	return before.Name
}

// oneShot lists kinds of objects that stay, or run once, by their nature.
var oneShot = []string{"Job.batch", "Pod", "PersistentVolumeClaim", "PersistentVolume"}

// afterCreation divides the differences between a changed resource and one that was created in the final
// state. It returns the differences that are a finding, and a remark about those that the change left as
// they were. If the resource reports another result, the user knows that the change was not applied, and
// there is neither.
func (in *input) afterCreation(s scenario.Step, before string, differences []state.Difference) (wrong []state.Difference, remarks []Finding) {
	changes := in.rested(before).Diff(in.rested(s.Name))
	works := slices.ContainsFunc(changes, func(c state.Difference) bool { return !isStatus(c.Path) && !in.isPrimary(c.Object) })
	var kept []state.Difference
	for _, d := range differences {
		touched := slices.ContainsFunc(changes, func(c state.Difference) bool { return c.Object == d.Object && !isStatus(c.Path) })
		moved := slices.ContainsFunc(changes, func(c state.Difference) bool {
			return c.Object == d.Object && (c.Path == "" || d.Path == "" || below(c.Path, d.Path) || below(d.Path, c.Path))
		})
		switch {
		case in.isPrimary(d.Object) && isResult(d):
			return nil, nil
		case isStatus(d.Path) || in.isPrimary(d.Object):
		case d.Path == "" && slices.Contains(oneShot, kindIn(d.Object)):
		case moved, d.Want == "" && d.Path != "" && touched, d.Want == "" && d.Path == "" && works:
			wrong = append(wrong, d)
		default:
			kept = append(kept, d)
		}
	}
	if len(kept) > 0 {
		d := mostTelling(kept)
		what := d.Object + " is as before"
		if d.Path != "" {
			what = d.Path + " of " + what
		}
		remarks = append(remarks, in.finding(CreationOnly, s.Name, fmt.Sprintf("after the change of %s, %s; if the resource is created like this, it is different", s.Patch.String(), what), kept))
	}
	return wrong, remarks
}

// isPrimary reports whether the controller reconciles the object with a canonical name.
func (in *input) isPrimary(key string) bool { return slices.Contains(in.subject.Primary, kindIn(key)) }

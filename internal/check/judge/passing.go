package judge

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// passing returns the conditions that are False after a step and were True before, but never True
// at rest. Such a condition records that the controller once observed a passing state, such as Pods
// that were not ready yet. A controller that was down at that moment never observes the state, and
// has nothing to record.
func passing(labels *state.Labels, run *evidence.Run, step int) (all []string) {
	was := map[string]bool{}
	for _, c := range run.History.Between(run.Steps[0].Began, run.Steps[step].Rested) {
		for name, status := range conditionsOf(c.After) {
			was[labels.Of(c.Ref)+"\n"+name] = was[labels.Of(c.Ref)+"\n"+name] || status == "True"
		}
	}
	for _, s := range run.Steps[:step+1] {
		for ref, object := range run.History.At(s.Rested) {
			for name, status := range conditionsOf(object) {
				if status == "True" {
					delete(was, labels.Of(ref)+"\n"+name)
				}
			}
		}
	}
	for ref, object := range run.History.At(run.Steps[step].Rested) {
		for name, status := range conditionsOf(object) {
			if condition := labels.Of(ref) + "\n" + name; status == "False" && was[condition] {
				all = append(all, condition)
			}
		}
	}
	return all
}

// conditionsOf returns the statuses of an object's conditions by type.
func conditionsOf(object state.Object) map[string]string {
	status, _ := object["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	found := map[string]string{}
	for _, item := range list {
		condition, _ := item.(map[string]any)
		name, _ := condition["type"].(string)
		found[name], _ = condition["status"].(string)
	}
	return found
}

// passed reports whether a difference is only a missing condition of a passing state.
func (r *Reference) passed(step string, d state.Difference) bool {
	s := r.find(step)
	name, inConditions := strings.CutPrefix(d.Path, "status.conditions[")
	return s != nil && inConditions && d.Got == "" && slices.Contains(s.Passing, d.Object+"\n"+strings.TrimSuffix(name, "]"))
}

package inputs

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// Answered reports whether the controller has reacted to the last step, which is still running: to a
// change of the object with a change of another object, and to the return to the old value by undoing
// what it had done. There is then no need to wait for as long as for a controller that may not have
// noticed the step yet.
func Answered(t *scenario.Trials, run *evidence.Run) bool {
	last := &run.Steps[len(run.Steps)-1]
	j := &judging{Trials: t, run: run}
	for i := range t.Trials {
		switch trial := &t.Trials[i]; last.Name {
		case trial.Step, trial.Then:
			return len(j.others(last.Began, run.History.Last())) > 0
		case trial.Undo:
			at := slices.IndexFunc(run.Steps, func(s evidence.Step) bool { return s.Name == trial.Step })
			return at >= 0 && j.isBack(&run.Steps[at], last)
		}
	}
	return false
}

// others returns the objects that changed between two revisions, without the object of the trials, and
// without Leases, Events and what changes anyway.
func (j *judging) others(after, upTo int64) map[state.Ref]bool {
	found, anyway := map[state.Ref]bool{}, j.anyway()
	for _, c := range j.run.History.Between(after, upTo) {
		if !anyway[c.Ref] && !j.isObject(c.Ref) && c.Effective() && !request.IsLeaseKind(c.Ref.GroupKind) && c.Ref.Kind != "Event" {
			found[c.Ref] = true
		}
	}
	return found
}

// anyway returns the objects that change in the control steps, such as one in which a controller stores the
// time of each round.
func (j *judging) anyway() map[state.Ref]bool {
	found := map[state.Ref]bool{}
	for i := range j.run.Steps {
		if step := &j.run.Steps[i]; slices.Contains(j.Controls, step.Name) {
			for _, c := range j.run.History.Between(step.Began, step.Rested) {
				found[c.Ref] = true
			}
		}
	}
	return found
}

// isBack reports whether a change had an effect on other objects, and whether they are now as before the
// change, apart from their status.
func (j *judging) isBack(change, undo *evidence.Step) bool {
	touched := j.others(change.Began, undo.Began)
	before, now := j.run.History.Living(change.Began), j.run.History.Living(j.run.History.Last())
	for ref := range touched {
		for _, path := range changed(map[string]any(before[ref]), map[string]any(now[ref])) {
			if !strings.HasPrefix(path, "status") {
				return false
			}
		}
	}
	return len(touched) > 0
}

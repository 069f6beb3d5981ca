package inputs

import (
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// Reaction describes what the controller has done so far about the last step of a run of trials.
type Reaction int

// These are the reactions.
const (
	Unneeded Reaction = iota // nothing need happen: the step undoes a change that had no visible effect, or is no trial
	Missing                  // a change has not led to a change of another object
	Left                     // the return to the old value has not undone everything that the change has done
	Complete                 // the controller has reacted, so there is no need to wait any longer
)

// Reacted returns the reaction to the last step, which is still running: to a change of the object with a
// change of another object, and to the return to the old value by undoing what it had done.
func Reacted(t *scenario.Trials, run *evidence.Run) Reaction {
	last := &run.Steps[len(run.Steps)-1]
	j := &judging{Trials: t, run: run}
	if t.Marks() {
		return j.awaited(last)
	}
	for i := range t.Trials {
		switch trial := &t.Trials[i]; last.Name {
		case trial.Step, trial.Then:
			if len(j.others(last.Began, run.History.Last())) > 0 {
				return Complete
			}
			return Missing
		case trial.Undo:
			at := slices.IndexFunc(run.Steps, func(s evidence.Step) bool { return s.Name == trial.Step })
			if at < 0 {
				return Unneeded
			}
			return j.undone(&run.Steps[at], last)
		}
	}
	return Unneeded
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

// undone returns the reaction to the return to the old value: whether a change had an effect on other
// objects, and whether they are now as before the change, apart from their status.
func (j *judging) undone(change, undo *evidence.Step) Reaction {
	touched := j.others(change.Began, undo.Began)
	if len(touched) == 0 {
		return Unneeded
	}
	before, now := j.run.History.Living(change.Began), j.run.History.Living(j.run.History.Last())
	for ref := range touched {
		if isDerived(ref, before[ref]) || isDerived(ref, now[ref]) {
			continue
		}
		for _, path := range changed(map[string]any(before[ref]), map[string]any(now[ref])) {
			if !isResult(path) {
				return Left
			}
		}
	}
	return Complete
}

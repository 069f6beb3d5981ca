package inputs

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/rejection"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// marked returns the outcome of a trial whose steps also change other fields: where is its text after each
// step? A text may be stored in another form, such as a hash, so only an effect that was undone is certain.
func (j *judging) marked(trial *scenario.Trial) (Outcome, string) {
	change, then, undo := j.steps[trial.Step], j.steps[trial.Then], j.steps[trial.Undo]
	for _, step := range []*evidence.Step{change, then, undo} {
		if step == nil || step.Crashed || step.Restless || step.Refused != "" {
			return Unknown, "" // which of the fields led to it is not known
		}
	}
	if name := j.left(undo.Rested, trial.Mark); name != "" {
		return Kept, "a text of it is still in " + name
	}
	switch {
	case j.has(then.Rested, trial.SecondMark()):
		return Effect, ""
	case len(rejection.In(j.run, change)) > 0 || len(rejection.In(j.run, then)) > 0 || !j.madeRound(change) || !j.madeRound(then):
		return Unknown, "" // the controller may not have got to the place where it passes on this text
	case j.has(change.Rested, trial.FirstMark()):
		return Once, ""
	}
	return Inert, ""
}

// madeRound reports whether a controller that pauses between its rounds has made a full one in a step.
func (j *judging) madeRound(step *evidence.Step) bool {
	if !slices.Contains(j.Patient, step.Name) {
		return true
	}
	after, _ := slices.BinarySearchFunc(j.run.Entries, step.RestedAt, func(e trace.Entry, at time.Duration) int { return cmp.Compare(e.At, at) })
	full, asked := rest.Round(j.run.Entries[:after], step.BeganAt)
	return full || asked == 0
}

// holder is an object in which the text of a field may arrive. It is lasting if the text must not stay.
type holder struct {
	name, text string
	lasting    bool
}

// holders returns the objects at a revision, without the object of the trials.
func (j *judging) holders(revision int64) (all []holder) {
	if known, has := j.held[revision]; has {
		return known
	}
	for ref, object := range j.run.History.Living(revision) {
		text, err := json.Marshal(object)
		if j.isObject(ref) || err != nil {
			continue
		}
		lasting := MustNotStay(ref.String()) && !isDerived(ref, object)
		all = append(all, holder{nameOf(ref), string(text), lasting})
	}
	slices.SortFunc(all, func(a, b holder) int { return strings.Compare(a.name, b.name) })
	if j.held == nil {
		j.held = map[int64][]holder{}
	}
	j.held[revision] = all
	return all
}

// has reports whether an object holds a text at a revision.
func (j *judging) has(revision int64, text string) bool {
	return slices.ContainsFunc(j.holders(revision), func(h holder) bool { return strings.Contains(h.text, text) })
}

// left returns the name of an object that holds a text at a revision and must not keep it, or "".
func (j *judging) left(revision int64, text string) string {
	for _, h := range j.holders(revision) {
		if h.lasting && strings.Contains(h.text, text) {
			return h.name
		}
	}
	return ""
}

// awaited returns the reaction to the last step of trials that are made together: are all texts where they
// have to be? The second texts are awaited only where the first ones have arrived.
func (j *judging) awaited(last *evidence.Step) Reaction {
	now := j.run.History.Last()
	reaction := Unneeded
	for i := range j.Trials.Trials {
		trial, arrived := &j.Trials.Trials[i], false
		switch last.Name {
		case trial.Step:
			arrived = j.has(now, trial.FirstMark())
		case trial.Then:
			arrived = j.has(now, trial.SecondMark()) || !j.has(last.Began, trial.FirstMark())
		case trial.Undo:
			arrived = j.left(now, trial.Mark) == ""
		default:
			continue
		}
		if !arrived {
			return Missing
		}
		reaction = Complete
	}
	return reaction
}

// Key identifies the object and the field of a trial, and what happens to the field.
func Key(t *scenario.Trials, i int) string {
	return t.Title + " " + t.Trials[i].Verb + " " + t.Trials[i].Field
}

// Package inputs decides what a controller did with each input: it is a pure function of the record
// of one run.
//
//	schema, sample ──scenario.GenerateTrials──▶ Trials ──lab──▶ evidence.Run ──Judge──▶ Tried
package inputs

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/rejection"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Outcome is the reaction of a controller to an input.
type Outcome string

// These are the outcomes.
const (
	Effect   Outcome = "effect"   // it changed something, or asked for something that the input names
	Inert    Outcome = "inert"    // neither the input nor its return to the old value had an effect
	Once     Outcome = "once"     // its first value had an effect, but the second had none
	Denied   Outcome = "denied"   // the API server denied a request that the input led to
	Told     Outcome = "told"     // it changed nothing, but printed something about the input
	Kept     Outcome = "kept"     // the return to the old value did not undo the effect
	Stuck    Outcome = "stuck"    // the object that it created stays after its deletion
	Unready  Outcome = "unready"  // the object was ready before, is not ready now, and its status does not say why
	Rejected Outcome = "rejected" // the API server keeps rejecting what it makes of the input
	Refused  Outcome = "refused"  // the API server, or a webhook, refused the input
	Crashed  Outcome = "crashed"  // it panicked, or kept exiting
	Restless Outcome = "restless" // it did not come to rest
	Unknown  Outcome = "unknown"  // the run ended before the input
)

// Suspicious reports whether the outcome may be a bug, and not only an unused field.
func (o Outcome) Suspicious() bool {
	return o == Crashed || o == Restless || o == Kept || o == Rejected || o == Denied || o == Unready || o == Stuck
}

// troubled are the outcomes of a change with which the controller could not cope, although it goes on.
var troubled = []Outcome{Rejected, Denied, Unready, Told}

// HasEffect reports whether a trial with the outcome had an effect, or may have had one.
func (o Outcome) HasEffect() bool { return o != Inert && o != Once && o != Refused }

// Tried is a trial with its outcome. Why explains the outcome, unless it is an effect or none.
type Tried struct {
	scenario.Trial
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"`
	// Signs names what the change did, apart from what happens anyway.
	Signs []string `json:"signs,omitempty"`
	// Trouble reports whether the controller could not cope with the change, and may have said so.
	Trouble bool `json:"trouble,omitempty"`
}

// Shows reports whether a trial shows nothing but what an earlier trial of the same change has shown. What
// Kubernetes makes of it, such as the Pods of a StatefulSet, may differ.
func (t *Tried) Shows(earlier *Tried) bool {
	shown := slices.DeleteFunc(slices.Clone(t.Signs), isConsequence)
	if len(shown) == 0 {
		shown = t.Signs
	}
	return len(shown) > 0 && !slices.ContainsFunc(shown, func(s string) bool { return !slices.Contains(earlier.Signs, s) })
}

// judging holds what the judgements of all trials of a run share.
type judging struct {
	*scenario.Trials
	run   *evidence.Run
	steps map[string]*evidence.Step
	noise map[sign]bool      // signs that prove nothing
	heard map[string]bool    // lines that the controller prints anyway
	held  map[int64][]holder // the objects at revisions, for trials that are made together
}

// Judge returns the outcomes of the trials in a run. Everything after the first crash, and after
// the first step that did not come to rest, is unknown.
func Judge(t *scenario.Trials, run *evidence.Run) []Tried {
	j := &judging{Trials: t, run: run, steps: map[string]*evidence.Step{}}
	for i := range run.Steps {
		j.steps[run.Steps[i].Name] = &run.Steps[i]
	}
	j.noise, j.heard = j.listen(), j.overhear()
	tried := make([]Tried, len(t.Trials))
	for i, trial := range t.Trials {
		tried[i] = Tried{Trial: trial}
		if trial.Mark != "" {
			tried[i].Outcome, tried[i].Why = j.marked(&trial)
			continue
		}
		tried[i].Outcome, tried[i].Why = j.judge(&trial)
		if step := j.steps[trial.Step]; step != nil {
			tried[i].Signs = j.named(step)
			tried[i].Trouble = slices.Contains(troubled, tried[i].Outcome) || tried[i].Outcome.HasEffect() && j.complains(step)
		}
	}
	if t.Marks() && !Handled(tried) {
		for i := range tried {
			tried[i].Outcome = Unknown // the controller did not get to the place where it passes on texts
		}
	}
	return tried
}

// judge returns the outcome of a trial, with its reason.
func (j *judging) judge(trial *scenario.Trial) (Outcome, string) {
	change, then, undo := j.steps[trial.Step], j.steps[trial.Then], j.steps[trial.Undo]
	for _, step := range []*evidence.Step{change, then, undo} {
		switch {
		case step == nil:
		case step.Crashed:
			return Crashed, j.run.Gone
		case step.Restless || j.repeats(step):
			return Restless, ""
		case step.Refused != "" && step == undo:
			return Refused, "it could not be undone: " + step.Refused
		case step.Refused != "":
			return Refused, step.Refused
		}
	}
	if change == nil {
		return Unknown, j.ended()
	}
	for _, why := range []func(*evidence.Step) (Outcome, string){j.rejected, j.denied} {
		if outcome, why := why(change); outcome != "" {
			return outcome, why
		}
	}
	switch {
	case undo == nil:
		return Unknown, ""
	case trial.Creates():
		return j.created(trial, undo)
	case !j.changes(change):
		return Refused, "the API server stored no change"
	}
	last := change
	if then != nil {
		last = then
	}
	if why := j.unready(trial, change, last); why != "" {
		return Unready, why
	}
	if why := j.kept(change, last, undo); why != "" {
		return Kept, why
	}
	switch {
	case then != nil && j.moves(change) && !j.affects(then) && !j.tells(trial, then):
		return Once, ""
	case j.affects(change) || j.affects(undo) || j.asks(trial, change):
		return Effect, ""
	case j.tells(trial, change):
		return Told, ""
	}
	return Inert, ""
}

// created returns the outcome of a trial that creates another object, and then deletes it.
func (j *judging) created(trial *scenario.Trial, undo *evidence.Step) (Outcome, string) {
	for ref, object := range j.run.History.Living(undo.Rested) {
		if ref.String() == j.KindGroup && strings.Contains(string(trial.Value), `"`+ref.Name+`"`) && object.Deleting() && len(object.Finalizers()) > 0 {
			return Stuck, "it keeps the finalizer " + strings.Join(object.Finalizers(), ", ")
		}
	}
	return Effect, ""
}

// ended returns why the run ended before its first trial, or "".
func (j *judging) ended() string {
	if len(j.run.Steps) == 0 {
		return ""
	}
	last := &j.run.Steps[len(j.run.Steps)-1]
	switch {
	case !last.Restless || slices.ContainsFunc(j.Trials.Trials, func(t scenario.Trial) bool { return t.Has(last.Name) }):
		return ""
	case last.Unrest == "":
		return "the controller did not come to rest in step " + last.Name
	}
	return "the controller did not come to rest in step " + last.Name + " (" + last.Unrest + ")"
}

// rejected describes a write that the API server keeps rejecting in a step, if the status of the object does
// not say so.
func (j *judging) rejected(step *evidence.Step) (Outcome, string) {
	if rejection.Tell(j.run, step, []string{j.KindGroup}).InStatus {
		return "", ""
	}
	for _, r := range rejection.In(j.run, step) {
		return Rejected, r.Object() + ": " + r.Last.Message
	}
	return "", ""
}

// denied describes a request that the API server denied in a step, but in no step before it.
func (j *judging) denied(step *evidence.Step) (Outcome, string) {
	before := map[string]bool{}
	for i := range j.run.Steps {
		at := &j.run.Steps[i]
		for _, c := range j.calls(at) {
			what := c.Verb + " " + c.Target.Resource + " " + c.Target.Group
			switch {
			case c.Code != http.StatusForbidden || c.Endpoint != "":
			case at == step && !before[what]:
				return Denied, what
			default:
				before[what] = true
			}
		}
		if at == step {
			break
		}
	}
	return "", ""
}

// calls returns the requests of the controller in a step.
func (j *judging) calls(step *evidence.Step) (all []*trace.Call) {
	end := step.RestedAt
	if end == 0 {
		end = j.run.Took
	}
	for i := range j.run.Entries {
		if e := &j.run.Entries[i]; e.Call != nil && e.Instance != "" && e.At >= step.BeganAt && e.At <= end {
			all = append(all, e.Call)
		}
	}
	return all
}

// manyWrites is the number of writes of one object in a step from which the controller seems to repeat
// itself. On a busy machine, a loop may pause for so long that the step ends as if it had come to rest.
const manyWrites = 20

// repeats reports whether the controller wrote the same object again and again in a step.
func (j *judging) repeats(step *evidence.Step) bool {
	writes := map[trace.Target]int{}
	for _, c := range j.calls(step) {
		if c.Code >= 300 || c.Verb != "update" && c.Verb != "patch" || c.Target.Resource == "leases" || c.Target.Resource == "events" {
			continue
		}
		if writes[c.Target]++; writes[c.Target] == manyWrites {
			return true
		}
	}
	return false
}

// asks reports whether the controller sent a request for an object that the new value names.
func (j *judging) asks(trial *scenario.Trial, step *evidence.Step) bool {
	return slices.ContainsFunc(j.calls(step), func(c *trace.Call) bool {
		return len(c.Target.Name) > 1 && strings.Contains(string(trial.Value), `"`+c.Target.Name+`"`)
	})
}

// Handled reports whether the controller reacted to any of the inputs. If it did not, no single
// field can be blamed.
func Handled(tried []Tried) bool {
	return slices.ContainsFunc(tried, func(t Tried) bool { return t.Outcome == Effect || t.Outcome == Once || t.Outcome == Kept })
}

// Deaf reports whether the controller reacted to so few fields that it probably waits for something
// that the cluster does not have. A controller that reacts to many fields does its work, however many it ignores.
// All trials are of one kind.
func Deaf(tried []Tried) bool {
	const fewest, many = 8, 15
	fields := map[string]bool{} // whether the field has an effect
	for _, t := range tried {
		if !t.Creates() && t.Outcome != Refused && t.Outcome != Unknown {
			fields[t.Field] = fields[t.Field] || t.Outcome.HasEffect()
		}
	}
	deaf := 0
	for _, hasEffect := range fields {
		if !hasEffect {
			deaf++
		}
	}
	return deaf > fewest && 2*deaf > len(fields) && len(fields)-deaf < many
}

// later matches the names of fields that matter only later: at the deletion, after a time, after a
// failure, or in the next rollout.
var later = regexp.MustCompile(`(?i)(policy|retention|retain|cleanup|ttl|timeout|interval|period|duration|delay|backoff|retry|retries|schedule|cron|strategy|window|limit|grace)\w*$`)

// InertFields returns the indexes of trials, one for each field that has no effect. All trials are of
// one kind. Labels and annotations belong to the user, so they need no effect, and fields that matter
// only later cannot be judged. That a field can be removed, or emptied, without an effect is no proof, because this may
// be its default; so another value must have been tried. Nor is a field without an effect if a field in
// it has one, or may have one.
func InertFields(tried []Tried) (found []int) {
	seen := map[string]bool{}
	for i, t := range tried {
		if seen[t.Field] || t.Outcome != Inert && t.Outcome != Once || within(t.Field, "metadata") || later.MatchString(t.Field) || !slices.Contains([]string{"change", "add", "add-to", "append"}, t.Verb) {
			continue
		}
		seen[t.Field] = true
		if !slices.ContainsFunc(tried, func(o Tried) bool { return o.Outcome.HasEffect() && within(o.Field, t.Field) && !t.covers(&o) }) {
			found = append(found, i)
		}
	}
	return found
}

// covers reports whether a trial makes up for another one, for which there was no time: once a missing field was added, an
// empty value of it can hardly show anything else.
func (t *Tried) covers(other *Tried) bool {
	return t.Verb == "add" && other.Verb == "empty" && other.Outcome == Unknown && other.Field == t.Field
}

// within reports whether a field is another field, or lies in it.
func within(field, other string) bool {
	rest, found := strings.CutPrefix(field, other)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

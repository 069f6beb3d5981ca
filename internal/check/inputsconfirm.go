package check

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// confirm repeats what the trials show, and reports what they show again. Suspects, fields without an
// effect, and bad inputs, which may concern other resources or the deletion, take turns, so that none of them
// takes all of the time.
func (t *trial) confirm(ctx context.Context) error {
	suspects, idle, troubling := t.suspects(), t.inert(), t.troubling()
	t.count(len(suspects), len(idle))
	suspects, staying := apart(suspects)
	idle, missing := apart(idle)
	t.list()
	queue := scenario.ByTurns([][]confirmation{
		t.marksAgain(slices.Concat(staying, missing)),
		confirmations(t.firstOf("inputs that may show a bug", suspects, mostSuspects), t.suspect, (*triedInput).untried),
		t.idleGroups(idle),
		confirmations(t.firstOf("inputs that may concern other resources", t.provable(troubling), mostTroubling), t.beside, func(*triedInput) string {
			return "there was no time to try whether bad inputs keep the controller from its work on other resources; increase --budget"
		}),
		confirmations(t.firstOf("inputs that may concern the deletion", troubling, mostTroubling), t.undeletable, func(*triedInput) string {
			return "there was no time to try whether a resource with a bad input can be deleted; increase --budget"
		}),
	})
	if len(queue) == 0 {
		return nil
	}
	t.Observer.Phase("confirming " + noun.Count(len(queue), "input"))
	t.Observer.Total(len(queue))
	defer t.doubted()
	return t.share(ctx, len(queue), func(ctx context.Context, w *fleet.Worker, i int) error {
		if why := t.leaves(&queue[i]); why != "" {
			t.note(why)
		} else if !t.hasEnough() {
			return queue[i].run(ctx, w, queue[i].triedInput)
		}
		return nil
	})
}

// confirmation is the repetition of a trial.
type confirmation struct {
	triedInput
	run func(context.Context, *fleet.Worker, triedInput) error
	// late returns the note if there is no time for the repetition, or "" if it is made nevertheless.
	late func(*triedInput) string
}

// firstOf returns at most the given number of inputs, and notes how many there are if it leaves some out.
func (t *trial) firstOf(what string, tried []triedInput, most int) []triedInput {
	if len(tried) <= most {
		return tried
	}
	t.note(fmt.Sprintf("only %d of %d %s are tried again; repair what is reported, and check again", most, len(tried), what))
	return tried[:most]
}

func confirmations(tried []triedInput, run func(context.Context, *fleet.Worker, triedInput) error, late func(*triedInput) string) (all []confirmation) {
	for _, d := range tried {
		all = append(all, confirmation{d, run, late})
	}
	return all
}

// untried returns the note about a suspect for which there is no time. A panic is confirmed in a few
// seconds.
func (d *triedInput) untried() string {
	if d.panics() {
		return ""
	}
	return d.seen() + ", and there was no time to try it again; increase --budget"
}

// leaves returns the reason why a repetition is left out, or "". What has begun may take longer than the
// time for inputs.
func (t *trial) leaves(d *confirmation) string {
	if time.Now().After(t.end) {
		return d.late(&d.triedInput)
	}
	return ""
}

// gravest lists the suspicious outcomes in the order in which they are confirmed: first a crash, then what a few
// short runs confirm, and last what needs a lesson, or the time of the horizon.
var gravest = []inputs.Outcome{inputs.Crashed, inputs.Denied, inputs.Rejected, inputs.Stuck, inputs.Kept, inputs.Unready, inputs.Restless}

// suspects returns the trials that may show a bug, the gravest first.
func (t *trial) suspects() (found []triedInput) {
	for _, outcome := range gravest {
		found = append(found, t.distinct(func(d *triedInput) bool { return d.Outcome == outcome })...)
	}
	return found
}

// apart divides fields into those that were changed alone, and those that were changed with others, each with a text of
// its own.
func apart(all []triedInput) (alone, marked []triedInput) {
	for _, d := range all {
		if d.marks == nil {
			alone = append(alone, d)
		} else {
			marked = append(marked, d)
		}
	}
	return alone, marked
}

// marksAgain returns a confirmation for each group of labels and annotations that holds some of the fields.
func (t *trial) marksAgain(marked []triedInput) (all []confirmation) {
	var groups []*scenario.Trials
	fields := map[*scenario.Trials][]triedInput{}
	for _, d := range marked {
		if fields[d.marks] == nil {
			groups = append(groups, d.marks)
		}
		fields[d.marks] = append(fields[d.marks], d)
	}
	for _, of := range groups {
		all = append(all, confirmation{triedInput: fields[of][0], run: func(ctx context.Context, w *fleet.Worker, _ triedInput) error {
			return t.markAgain(ctx, w, of, fields[of])
		}, late: func(*triedInput) string {
			return unrepeated(of, fields[of], "there was no time to try this again; increase --budget")
		}})
	}
	return all
}

// markAgain changes labels and annotations together once more, and reports the texts that stay again, and those that again
// do not arrive although others do.
func (t *trial) markAgain(ctx context.Context, w *fleet.Worker, of *scenario.Trials, fields []triedInput) error {
	again := t.paced(of.Back(), shortestMark)
	if len(again.Patient) == 0 { // only a text that stays is worth a long wait
		again = again.PatientIn(of.Trials[0].Undo)
	}
	l, err := w.Kept(ctx, again, t.windowOf(of), t.Seed)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		t.note(unrepeated(of, fields, fmt.Sprintf("this could not be tried again: %v", err)))
		return nil
	}
	if t.tally.learnt(l.Runs); t.isTooSmallFor(l) {
		return nil // what was found may only be due to the profile
	}
	t.addScenario(l.Scenario)
	for _, d := range fields {
		if d.Outcome == inputs.Kept {
			t.staysAgain(d, l)
		} else if err := t.missingAgain(ctx, w, d, l); err != nil {
			return err
		}
	}
	return nil
}

// unrepeated returns the note that what labels and annotations have shown was not confirmed, and why.
func unrepeated(of *scenario.Trials, fields []triedInput, why string) string {
	var staying, missing []string
	for _, d := range fields {
		if d.Outcome == inputs.Kept {
			staying = append(staying, d.Field)
		} else {
			missing = append(missing, d.Field)
		}
	}
	var shown []string
	if len(staying) > 0 {
		shown = append(shown, "after the change back, something stayed of "+strings.Join(staying, ", "))
	}
	if len(missing) > 0 {
		shown = append(shown, "there was no effect of "+strings.Join(missing, ", "))
	}
	return fmt.Sprintf("%s: %s, and %s", of.KindGroup, strings.Join(shown, "; "), why)
}

// staysAgain reports a field whose text stays again.
func (t *trial) staysAgain(d triedInput, l *fleet.Lesson) {
	given := d.marks.Trials[d.number].Given()
	for _, f := range l.Findings {
		if f.Input == given {
			t.faultless(f, l)
			return
		}
	}
	t.note(d.seen() + ", but not when it was tried again")
}

// missingAgain reports a field whose text did not arrive again, unless it has an effect with another sample. That the text of
// another field arrives proves that the controller has seen the change.
func (t *trial) missingAgain(ctx context.Context, w *fleet.Worker, d triedInput, l *fleet.Lesson) error {
	arrives := slices.ContainsFunc(l.Tried, func(o inputs.Tried) bool {
		return o.Outcome == inputs.Effect || d.Outcome == inputs.Inert && (o.Outcome == inputs.Once || o.Outcome == inputs.Kept)
	})
	if !arrives || l.Tried[d.number].Outcome != d.Outcome {
		t.unsure(d)
		return nil
	}
	return t.idleElsewhere(ctx, w, d)
}

// troubling returns the trials with which the controller could not cope. They may keep it from its work on
// other resources, or from the deletion of this one.
func (t *trial) troubling() []triedInput {
	return t.distinct(func(d *triedInput) bool { return d.Trouble && !d.Creates() })
}

// provable returns the trials for which another trial can prove that the controller is at work.
func (t *trial) provable(tried []triedInput) []triedInput {
	return slices.DeleteFunc(slices.Clone(tried), func(d triedInput) bool { return t.known(d) == nil })
}

// distinct returns the trials that match. Of those of a kind with the same reason, it returns only the
// first, because they probably show the same bug.
func (t *trial) distinct(matches func(*triedInput) bool) (found []triedInput) {
	seen := map[string]bool{}
	for i := range t.tried {
		d := &t.tried[i]
		reason := cmp.Or(reasonOf(d.Why), d.Field+" "+d.Verb)
		switch {
		case d.Creates(): // whatever the name is, the same part of the controller cannot deal with it
			reason = d.Field
		case d.Outcome == inputs.Kept: // the same place may keep the effects of two fields, which are two bugs
			reason += d.Field
		}
		if key := d.of.KindGroup + " " + reason; matches(d) && !seen[key] {
			seen[key] = true
			found = append(found, *d)
		}
	}
	return found
}

// quoted matches the values in a reason. The same mistake is reported with different values.
var quoted = regexp.MustCompile(`"[^"]*"`)

func reasonOf(why string) string { return quoted.ReplaceAllString(why, "") }

// suspect runs the scenario of an input without a fault, several times, and reports what it shows like
// the findings of all other scenarios. The scenario gets no faults.
func (t *trial) suspect(ctx context.Context, w *fleet.Worker, d triedInput) error {
	switch d.Outcome {
	case inputs.Unready:
		return t.unready(ctx, w, d)
	case inputs.Stuck:
		return t.undeletable(ctx, w, d)
	}
	l, err := t.repeat(ctx, w, d)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil: // the controller never comes to rest, but no loop was found
		t.note(fmt.Sprintf("%s: %s: %v", d.of.KindGroup, d.Given(), err))
		return nil
	}
	if t.tally.learnt(l.Runs); t.isTooSmallFor(l) {
		return nil // what was found may only be due to the profile
	}
	if len(l.Dropped) > 0 || !t.shown(d, l, shownByInputs) {
		t.note(d.seen() + ", but not when it was tried again")
	}
	return nil
}

// shown reports what the scenario of an input shows, if it has one of the given verdicts, and whether it shows
// anything.
func (t *trial) shown(d triedInput, l *fleet.Lesson, verdicts []judge.Verdict) (shown bool) {
	t.addScenario(l.Scenario)
	for _, f := range l.Findings {
		if slices.Contains(verdicts, f.Verdict) && !onlyLags(f) {
			shown = true
			if !precedes(l.Scenario, f.Step, d.Step) { // otherwise, the controller does it without the input as well
				f.Input = d.Given()
			}
			t.faultless(f, l)
		}
	}
	return shown
}

// precedes reports whether a step of a scenario comes before another one.
func precedes(sc *scenario.Scenario, step, other string) bool {
	at := func(name string) int {
		return slices.IndexFunc(sc.Steps, func(s scenario.Step) bool { return s.Name == name })
	}
	return at(step) >= 0 && at(step) < at(other)
}

// onlyLags reports whether a finding only shows that the controller had not yet said which version of the object it
// has seen. A slow controller says so late, and a field that changes nothing else has no effect.
func onlyLags(f judge.Finding) bool {
	return f.Verdict == judge.PathDependent && !slices.ContainsFunc(f.Differences, func(d state.Difference) bool { return d.Path != "status.observedGeneration" })
}

// repeat runs the scenario of an input.
func (t *trial) repeat(ctx context.Context, w *fleet.Worker, d triedInput) (*fleet.Lesson, error) {
	switch d.Outcome {
	case inputs.Crashed:
		return w.Crash(ctx, d.of.Single(d.at), t.windowOf(d.of), t.Seed)
	case inputs.Rejected, inputs.Denied:
		return w.Again(ctx, d.of.Single(d.at), t.windowOf(d.of), t.Seed)
	case inputs.Kept:
		return w.Kept(ctx, d.of.Single(d.at), t.windowOf(d.of), t.Seed)
	}
	return w.Learn(ctx, d.of.Only(d.at), t.Seed, true)
}

// undeletable deletes an object with a bad input, and reports if it never goes, although an object without
// this input does. Only an object that has stayed for a short time is worth the horizon. One such input of a kind
// is enough, because the same part of the controller deals with all deletions.
func (t *trial) undeletable(ctx context.Context, w *fleet.Worker, d triedInput) error {
	for n, quiet := range []time.Duration{minHorizon, t.patience()} {
		if t.isStuck(d.of.KindGroup) {
			return nil
		}
		l, err := w.Again(ctx, d.of.Deleted(d.at, quiet), t.windowOf(d.of), t.Seed+uint64(n))
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			t.note(fmt.Sprintf("%s: %s: whether the resource can be deleted then could not be tried: %v", d.of.KindGroup, d.Given(), err))
			return nil
		}
		if t.tally.learnt(l.Runs); t.isTooSmallFor(l) {
			return nil // what was found may only be due to the profile
		}
		stays := slices.ContainsFunc(l.Findings, func(f judge.Finding) bool { return f.Verdict == judge.StuckTerminating })
		switch {
		case !stays && d.Outcome == inputs.Stuck:
			t.note(d.seen() + ", but not when it was tried again")
			return nil
		case !stays:
			return nil
		case n > 0 && t.firstStuck(d.of.KindGroup):
			t.shown(d, l, []judge.Verdict{judge.StuckTerminating})
		}
	}
	return nil
}

// isStuck reports whether the report names a resource of a kind that stays after its deletion.
func (t *trial) isStuck(kind string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.stuck, kind)
}

// firstStuck remembers that a resource of a kind stays after its deletion, and reports whether it is the first one.
func (t *trial) firstStuck(kind string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !slices.Contains(t.stuck, kind)
	t.stuck = append(t.stuck, kind)
	return first
}

// panics reports whether the controller panicked. To confirm that takes a few seconds, unlike an exit,
// after which the controller is started again until it is clear that it does not recover.
func (d *triedInput) panics() bool { return d.Outcome == inputs.Crashed && d.Why == "" }

// seen describes what a suspicious trial has shown.
func (d *triedInput) seen() string {
	seen := fmt.Sprintf("%s: %s: %s", d.of.KindGroup, d.Given(), seemed[d.Outcome])
	if d.Why != "" {
		seen += " (" + d.Why + ")"
	}
	return seen
}

// seemed describes what a suspicious trial has shown.
var seemed = map[inputs.Outcome]string{
	inputs.Crashed: "the controller panicked or exited", inputs.Stuck: "it stayed after its deletion", inputs.Restless: "the controller did not come to rest",
	inputs.Kept: "the change back did not undo everything", inputs.Denied: "the API server denied a request",
	inputs.Rejected: "the API server kept rejecting a write", inputs.Unready: "the resource did not become ready",
}

// shownByInputs lists the verdicts that an input may have. The scenario of an input also shows what
// all other scenarios show.
var shownByInputs = []judge.Verdict{judge.Crashed, judge.HotLoop, judge.PathDependent, judge.RBACMissing, judge.APIRemoved, judge.RefusedLate}

// about describes the changed field for a remark.
func (d *triedInput) about() judge.Field {
	return judge.Field{
		Scenario: d.of.Scenario.Name, Step: d.Step, Object: d.of.Object, Kind: d.of.KindGroup, Path: d.Field,
		Given: scrub.Known.Text(d.Given()),
	}
}

func (t *trial) remark(f judge.Finding) {
	f.Silence, f.Seed = opinions.Silence(f), t.Seed
	t.check.mu.Lock()
	defer t.check.mu.Unlock()
	t.result.Report.Add(f)
}

// unready tries a change again after which a resource was not ready any more, and gives the controller the
// horizon, because it may only need more time.
func (t *trial) unready(ctx context.Context, w *fleet.Worker, d triedInput) error {
	for n := range repetitions {
		done, err := w.Try(ctx, d.of.Patiently(d.at, t.patience()), t.windowOf(d.of), t.patience()+otherSteps, t.Seed+uint64(n)+1)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || len(done) != 1 || done[0].Outcome != inputs.Unready:
			t.note(d.seen() + ", but not when it was tried again")
			return nil
		}
	}
	t.remark(judge.Unready(d.about(), d.Why))
	return nil
}

// repetitions is the number of times that a remark of its own is tried again.
const repetitions = 2

// otherSteps is the time for the other steps of a repetition. They take a few seconds, but many times as
// long on a busy machine.
const otherSteps = time.Minute

// patience is the time for which a controller must do nothing, so that it is certain.
func (t *trial) patience() time.Duration { return max(t.Horizon, minHorizon) }

// beside reports that the controller ignores another resource while it cannot cope with this one. A
// controller that copes with both answers at once, so the first attempt waits for a short time only.
func (t *trial) beside(ctx context.Context, w *fleet.Worker, d triedInput) error {
	known := t.known(d)
	for n, quiet := range []time.Duration{minHorizon, t.patience()} {
		trials := d.of.Beside(d.at, known.at, quiet)
		if trials == nil {
			return nil
		}
		stalls, err := t.stalls(ctx, w, d, trials, quiet, t.Seed+uint64(n)+1)
		if err != nil || !stalls {
			return err
		}
	}
	t.remark(judge.Stalled(d.about(), t.patience()))
	return nil
}

// stalls reports whether a change keeps the controller from its work on another resource. An attempt that
// shows nothing, because the machine is busy, is repeated.
func (t *trial) stalls(ctx context.Context, w *fleet.Worker, d triedInput, trials *scenario.Trials, quiet time.Duration, seed uint64) (bool, error) {
	for range repetitions {
		done, err := w.Try(ctx, trials, t.windowOf(trials), quiet+otherSteps, seed)
		if err != nil && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err != nil {
			continue
		}
		if stalls, clear := inputs.Stalls(done); clear {
			return stalls, nil
		}
	}
	t.note(fmt.Sprintf("%s: after %s, it could not be decided whether the controller still handles other resources", d.of.KindGroup, d.Given()))
	return false, nil
}

// known returns a trial of the same scenario whose effect is known, and that does not affect the given
// one; nil means that there is none.
func (t *trial) known(d triedInput) *triedInput {
	for i := range t.tried {
		o := &t.tried[i]
		if o.of == d.of && o.Outcome == inputs.Effect && len(o.Signs) > 0 && !o.Creates() && d.of.Proof(d.at, o.at) != nil {
			return o
		}
	}
	return nil
}

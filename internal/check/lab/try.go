package lab

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
)

// Try changes one field of an object after the other, in one run, and returns what the controller
// did with each. The window is that of a lesson with the same object; zero means that there is none.
// Once the time within is over, Try begins no further step.
func (l *Lab) Try(ctx context.Context, t *scenario.Trials, window, within time.Duration, seed uint64) ([]inputs.Tried, error) {
	out, err := l.try(ctx, t, attempt{window: window, until: time.Now().Add(within), seed: seed})
	if err != nil {
		return nil, err
	}
	return judged(t, out), nil
}

// judged returns the outcomes of trials, without secrets.
func judged(t *scenario.Trials, run *evidence.Run) []inputs.Tried {
	tried := inputs.Judge(t, run)
	for i := range tried {
		tried[i].Why = scrub.Known.Text(tried[i].Why)
	}
	return tried
}

// attempt holds the settings of a run that tries inputs.
type attempt struct {
	window  time.Duration // of a lesson with the same object; zero means that there is none
	until   time.Time     // after that, no further step begins, unless it is zero
	seed    uint64
	delays  *jitter // may be nil
	patient bool    // a controller that does not react gets more time
}

// try runs the scenario of trials without faults up to the first panic.
func (l *Lab) try(ctx context.Context, t *scenario.Trials, a attempt) (*evidence.Run, error) {
	usual := max(a.window, min(carefully*a.window, firstWindow))
	if a.window <= 0 {
		usual = firstWindow
	}
	r := &run{
		lab: l, scenario: t.Scenario, window: max(usual, time.Duration(t.Scenario.Rest.Quiet)), streams: 1, idle: idle, trying: true,
		trials: t, until: a.until, patient: a.patient, jitter: a.delays, out: &evidence.Run{Seed: a.seed},
	}
	out, err := r.do(ctx)
	var gone *GoneError
	if errors.As(err, &gone) && len(out.Steps) > 2 { // it has survived the creation of the object
		out.Gone, err = gone.Error(), nil
		out.Steps[len(out.Steps)-1].Crashed = true
	}
	return out, err
}

// Crash confirms that the controller crashes with an input, which is the only one of the trials. It takes less
// time than Learn, because each run ends at the panic. A controller that works on other things first has as
// much time for the change as in Try. The lesson has no findings if any run ends without a crash.
func (l *Lab) Crash(ctx context.Context, t *scenario.Trials, window time.Duration, seed uint64) (*Lesson, error) {
	lesson := &Lesson{Scenario: t.Scenario, bare: true}
	var crashed []*evidence.Run
	for len(crashed) < enoughCrashes {
		out, err := l.try(ctx, t, attempt{window: window, seed: seed})
		if err != nil {
			return nil, err
		}
		lesson.Took, lesson.Writes, lesson.Workloads = out.Took, effectiveWrites(out), makesWorkloads(out)
		// A controller that crashes before the input, or when the object is created, does so anyway.
		if last := out.Steps[len(out.Steps)-1]; !last.Crashed || last.Name == Started || last.Name == scenario.CreateStep {
			lesson.Runs = len(crashed) + 1
			return lesson, nil
		}
		crashed = append(crashed, out)
	}
	l.addCrashes(lesson, 0, crashed)
	lesson.Trace = crashed[len(crashed)-1].Entries
	return lesson, nil
}

// Again confirms what a trial has shown and what needs no comparison with other runs: a rejected write, a
// request that was denied, or a deletion that does not end. It takes a fraction of the time of Learn, because the
// runs have the times of trials, nothing is learnt for faults, and one run is enough if it shows nothing.
func (l *Lab) Again(ctx context.Context, t *scenario.Trials, window time.Duration, seed uint64) (*Lesson, error) {
	lesson := &Lesson{Scenario: t.Scenario, bare: true}
	var runs []*evidence.Run
	for n := range uint64(repetitions) {
		out, err := l.try(ctx, t, attempt{window: window, seed: seed + n})
		if err != nil {
			return nil, err
		}
		runs = append(runs, out)
		lesson.describe(runs)
		lesson.Findings = slices.Concat(judge.Faultless(nil, runs, &l.config.Subject), judge.Undeleted(t.Scenario, runs, &l.config.Subject))
		if len(lesson.Findings) == 0 {
			return lesson, nil
		}
		lesson.Trace = out.Entries
	}
	return lesson, nil
}

// repetitions is the number of runs of Again.
const repetitions = 2

// Kept confirms that the controller does not undo what the only trial has done, once the old value is back. Unlike
// Learn, it waits for the reaction to each step: a slow controller would otherwise see nothing of a change that has
// been undone again. In the last run, the controller gets much time to undo the change, and if it does not react to the
// change at all, it gets more time for that in all runs. As in Learn, several runs with other delays show what differs
// anyway, and so does one in which nothing is changed. The lesson has no findings if a run undoes everything.
//
// Of trials that are made together, each text that stays is a finding, whose input is the field. One run is enough,
// because the trials have shown the same, and a text can only come from its field. The lesson has the outcomes of all trials.
func (l *Lab) Kept(ctx context.Context, t *scenario.Trials, window time.Duration, seed uint64) (*Lesson, error) {
	if t.Marks() {
		return l.keptTexts(ctx, t, attempt{window: window, seed: seed})
	}
	return patiently(func(patient bool) (*Lesson, inputs.Outcome, error) {
		return l.kept(ctx, t, attempt{window: window, seed: seed, patient: patient})
	})
}

// patiently confirms what a trial has shown, and does it again with more time if the controller did not react.
func patiently(confirm func(patient bool) (*Lesson, inputs.Outcome, error)) (*Lesson, error) {
	lesson, outcome, err := confirm(false)
	if err == nil && slices.Contains([]inputs.Outcome{inputs.Inert, inputs.Once, inputs.Told}, outcome) {
		lesson, _, err = confirm(true)
	}
	return lesson, err
}

// kept also returns the outcome of the last run with the change.
func (l *Lab) kept(ctx context.Context, t *scenario.Trials, a attempt) (*Lesson, inputs.Outcome, error) {
	lesson := &Lesson{Scenario: t.Scenario, bare: true}
	var runs []*evidence.Run
	for n := range references {
		one := a
		if one.seed += uint64(n); n > 0 {
			one.delays = newJitter(a.seed, n)
		}
		one.patient = a.patient || n == references-1
		out, err := l.try(ctx, t, one)
		if err != nil {
			return nil, "", err
		}
		runs = append(runs, out)
		lesson.describe(runs)
		if tried := inputs.Judge(t, out); tried[0].Outcome != inputs.Kept {
			return lesson, tried[0].Outcome, nil
		}
	}
	var err error
	if lesson.Reference, err = judge.NewReference(t.Scenario, runs); err != nil {
		return nil, "", &SetupError{err}
	}
	unchanged, err := l.try(ctx, t.Unchanged().Waiting(runs[0].Took/time.Duration(len(runs[0].Steps))), a)
	if err != nil {
		return nil, "", err
	}
	lesson.Reference.LearnAnyway(unchanged)
	lesson.Findings, lesson.Trace = judge.Faultless(lesson.Reference, runs, &l.config.Subject), runs[len(runs)-1].Entries
	return lesson, inputs.Kept, nil
}

// keptTexts is Kept for trials that are made together.
func (l *Lab) keptTexts(ctx context.Context, t *scenario.Trials, a attempt) (*Lesson, error) {
	run, err := l.try(ctx, t, a)
	if err != nil {
		return nil, err
	}
	lesson := &Lesson{Scenario: t.Scenario, bare: true, Trace: run.Entries}
	lesson.describe([]*evidence.Run{run})
	lesson.Tried = judged(t, run)
	var kept []inputs.Tried
	var texts []string
	for _, tried := range lesson.Tried {
		if tried.Outcome == inputs.Kept {
			kept, texts = append(kept, tried), append(texts, tried.Mark)
		}
	}
	found, err := judge.Staying(texts, t.Scenario, run, &l.config.Subject, func(object string) bool {
		kind, _, _ := strings.Cut(object, " ")
		return inputs.MustNotStay(kind)
	})
	if err != nil {
		return nil, &SetupError{err}
	}
	for i, f := range found {
		if f != nil {
			f.Input = kept[i].Given()
			lesson.Findings = append(lesson.Findings, *f)
		}
	}
	return lesson, nil
}

// describe sets what a lesson says about its runs.
func (l *Lesson) describe(runs []*evidence.Run) {
	last := runs[len(runs)-1]
	l.Runs, l.Took, l.Writes, l.Workloads = len(runs), last.Took, effectiveWrites(last), makesWorkloads(last)
}

// panicTime is the time that a controller has to print its stack after the first line of a panic.
const panicTime = time.Second

// hasCrashed reports whether a run that tries inputs can end because the controller has panicked.
func (r *run) hasCrashed() bool {
	if !r.trying || !r.output.Panicked() {
		return false
	}
	if r.panicked.IsZero() {
		r.panicked = time.Now()
	}
	return time.Since(r.panicked) >= panicTime
}

// considerChange is the time that a controller has to react to a change of an input, and considerUndo the
// time that it has to undo what a change has done. Without a reaction, a rest shorter than that proves
// nothing: some controllers requeue after a second, and a rollout must often end before the next one.
const (
	considerChange = firstWindow
	considerUndo   = 4 * firstWindow
)

// slowReaction is both of these times in a patient run. percona-server-mongodb-operator tries for ten seconds to connect to
// each of two replica sets, without a request to the API server, and only then sees a change. A controller that still
// makes requests gets longestReaction to complete a round.
const (
	slowReaction    = 30 * time.Second
	longestReaction = 90 * time.Second
)

// reaction returns what the controller has done about a step of a trial.
func (r *run) reaction() inputs.Reaction {
	if r.trials == nil {
		return inputs.Unneeded
	}
	return inputs.Reacted(r.trials, &evidence.Run{Steps: r.out.Steps, History: r.lab.store.History()})
}

// answered reports whether a controller with long pauses has already reacted to a step of a trial, so
// that there is no need to wait until it looks again.
func (r *run) answered(o *rest.Observation, s *rest.Settings) bool {
	if r.trials == nil || !o.Polls && s.Window <= firstWindow {
		return false
	}
	return r.reaction() == inputs.Complete
}

// stillWorking is the longest pause between two requests of a controller that is at work: without other
// settings, client-go sends five requests a second (rest.DefaultQPS). A controller with one worker may see a
// change only after this work. longestWork limits the time that a step waits for that, because a
// controller may also ask for something all the time.
const (
	stillWorking = 500 * time.Millisecond
	longestWork  = 15 * time.Second
)

// considering returns for how long the controller may still react to a step of a trial that began at the
// given time.
func (r *run) considering(began time.Time) time.Duration {
	enough := time.Duration(0)
	switch r.reaction() {
	case inputs.Missing:
		enough = considerChange
	case inputs.Left:
		enough = considerUndo
	default:
		return 0
	}
	if r.isPatient() {
		since := began.Sub(r.began)
		full, asked := rest.Round(r.log.Entries(), since)
		return mayReact(full, time.Since(began), time.Since(r.began)-max(asked, since))
	}
	a, err := r.controller.Activity()
	if err != nil {
		return 0 // the run ends
	}
	return consider(enough, time.Since(began), time.Since(a.LastRequest), r.onlyPolls(&a))
}

// consider returns for how long a controller may still react, if usually a given time is enough.
func consider(enough, waited, asked time.Duration, polls bool) time.Duration {
	left := enough - waited
	if !polls && waited < longestWork {
		left = max(left, stillWorking-asked)
	}
	return left
}

// isPatient reports whether a controller that does not react to the step gets more time.
func (r *run) isPatient() bool {
	return r.patient || r.trials != nil && slices.Contains(r.trials.Patient, r.current)
}

// mayReact returns for how long a controller may still react in a patient run. It has waited for some time, and made no
// request for some time.
func mayReact(full bool, waited, silent time.Duration) time.Duration {
	left := slowReaction - waited
	if !full {
		left = max(left, min(slowReaction-silent, longestReaction-waited))
	}
	return left
}

// tryFailed notes that a step of a trial was refused. If the change was refused, the old value is still
// there. Otherwise the object is not as the next trials expect it, and the run ends.
func (r *run) tryFailed(step *scenario.Step, err error) error {
	switch {
	case step.Delete != nil && apierrors.IsNotFound(err):
		return nil // its creation was refused
	case step.Patch == nil && step.Name == scenario.CreateStep:
		return &StepError{Scenario: r.scenario.Name, Step: step.Name, Err: err}
	}
	r.out.Steps[len(r.out.Steps)-1].Refused = err.Error()
	if scenario.Refused(err) && !step.Undoes() {
		return nil
	}
	return errStop
}

// tryOver notes what the controller printed, and ends a run of trials when its time is over, and after a
// panic, even if the controller goes on: only the first panic of a run can be attributed to a step.
func (r *run) tryOver(m *evidence.Step) error {
	if !r.trying {
		return nil
	}
	m.Said = r.output.Since(r.heard)
	if m.Crashed = r.output.Panicked(); m.Crashed || !r.until.IsZero() && time.Now().After(r.until) {
		return errStop
	}
	return nil
}

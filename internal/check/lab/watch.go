package lab

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Watched holds the observations of one rest in a run without a fault.
type Watched struct {
	Step string `json:"step"`
	// Horizon is the time for which the controller was watched at rest. Horizon is zero if the run
	// did not reach the rest, for the reason in Failed.
	Horizon time.Duration `json:"horizon"`
	Failed  string        `json:"failed,omitempty"`
	// Quiet is the quiet time that the step needs, because its rest was only a plateau. Quiet is
	// zero if the state did not change. What names the object that changed last, if any.
	Quiet time.Duration `json:"quiet,omitempty"`
	What  string        `json:"what,omitempty"`
	// Endless reports whether the state still changed when the run stopped watching. In this case,
	// no quiet time suffices.
	Endless bool `json:"endless,omitempty"`
	// Ignore lists the fields that are written regularly at rest, as lines of a scenario's
	// ignore list.
	Ignore []string `json:"ignore,omitempty"`
	// Round is the longest interval of regular writes that are no defect.
	Round time.Duration `json:"round,omitempty"`
	// Beats describes regular writes that are no defect.
	Beats []string `json:"beats,omitempty"`
	// Findings are loops, and remarks about Events, that two runs have shown.
	Findings []judge.Finding `json:"findings,omitempty"`
	// Trace is the trace of the last run, if there are findings.
	Trace []trace.Entry `json:"-"`
}

const (
	// maxHorizons limits how long a rest is watched, as a multiple of the horizon. A period as long
	// as the horizon can be recognized only after several repetitions.
	maxHorizons = 4
	// watchRuns is the number of runs that must show a loop before it is reported.
	watchRuns = 2
	// spare and minSpare extend a learned pause: by 1/spare of the pause, but at least by minSpare.
	spare    = 4
	minSpare = 500 * time.Millisecond
)

// Watch runs a scenario without a fault up to a step, and watches the rest after this step
// for the horizon.
func (l *Lab) Watch(ctx context.Context, lesson *Lesson, step string, horizon time.Duration, seed uint64) (*Watched, error) {
	w := &Watched{Step: step}
	var loops []judge.Finding
	for n := range uint64(watchRuns) {
		out, found, until, err := l.watch(ctx, lesson, step, horizon, seed+n)
		if err != nil {
			return nil, err
		}
		if found == nil {
			w.Failed = cmp.Or(out.Inconclusive, out.Gone)
			return w, nil
		}
		shown := append(loopsOf(found, lesson.Reference, out, step), judge.EventStorms(out, len(out.Steps)-1, until, found.Changes())...)
		if n > 0 {
			w.Findings, w.Trace = inBoth(loops, shown), out.Entries
			break
		}
		w.learn(found, horizon, lesson.Scenario)
		if loops = shown; len(loops) == 0 {
			break
		}
	}
	return w, nil
}

// watch performs one run, and returns when it stopped watching. It returns a nil Resting if the run did
// not reach the rest that is to be watched.
func (l *Lab) watch(ctx context.Context, lesson *Lesson, step string, horizon time.Duration, seed uint64) (*evidence.Run, *judge.Resting, time.Duration, error) {
	r := &run{
		lab: l, scenario: lesson.Scenario, lesson: lesson, window: lesson.Window, streams: lesson.Streams,
		idle: idle, out: &evidence.Run{Seed: seed}, watched: &watched{step: step, horizon: horizon},
	}
	out, err := r.do(ctx)
	if err != nil || !r.watched.done {
		return out, nil, 0, err
	}
	found := judge.AtRest(lesson.Reference, out, len(out.Steps)-1, r.watched.until)
	return out, &found, r.watched.until, nil
}

func (w *Watched) learn(found *judge.Resting, horizon time.Duration, sc *scenario.Scenario) {
	w.Horizon = horizon
	w.What = found.What
	w.Endless = found.Pause > 0 && found.Silence < horizon
	if found.Pause > 0 && !w.Endless && sc.Rest.Quiet == 0 { // a quiet time that the user chose is not extended
		w.Quiet = found.Pause + max(found.Pause/spare, minSpare)
	}
	for i := range found.Beats {
		b, known := &found.Beats[i], true
		for _, field := range b.Fields {
			line := b.Kind + " " + field
			known = known && slices.Contains(sc.Ignore, line)
			w.Ignore = append(w.Ignore, line)
		}
		if !b.Loop {
			w.Round = max(w.Round, b.Period)
		}
		if !b.Loop && !known {
			w.Beats = append(w.Beats, b.String())
		}
	}
}

// loopsOf returns the beats that are a defect of the controller.
func loopsOf(found *judge.Resting, r *judge.Reference, out *evidence.Run, step string) (loops []judge.Finding) {
	for i := range found.Beats {
		if b := &found.Beats[i]; b.Loop {
			loops = append(loops, b.Finding(r, out, step))
		}
	}
	return loops
}

// inBoth returns the findings of the second run that the first run has shown as well.
func inBoth(first, second []judge.Finding) (both []judge.Finding) {
	for _, f := range second {
		for _, other := range first {
			if other.ID == f.ID {
				f.Reproduced, f.Attempts = watchRuns, watchRuns
				both = append(both, f)
				break
			}
		}
	}
	return both
}

// watched is the state of a run that watches one rest.
type watched struct {
	step    string
	horizon time.Duration
	done    bool
	until   time.Duration // when the run stopped watching
}

// watchRest watches a step at rest for the horizon, or for longer if something changes,
// and then ends the run.
func (r *run) watchRest(ctx context.Context, m *evidence.Step) error {
	began, started := r.since(), time.Now()
	deadline := began + r.watched.horizon
	for {
		store, api := r.lab.store.touched.Next(), r.controller.Touched()
		if _, err := r.controller.Activity(); err != nil {
			return err
		}
		now := r.since()
		if now >= deadline {
			// The changes are examined only now, because examining all of them after each change
			// would take most of a processor if the controller writes all the time.
			if late := r.lateChanges(m); late > 0 {
				deadline = min(max(deadline, late+r.watched.horizon), began+maxHorizons*r.watched.horizon)
			}
			if now >= deadline {
				r.watched.done, r.watched.until = true, now
				return errStop
			}
		}
		left, err := r.endPodsAtRest(ctx, started)
		if err != nil {
			return err
		}
		if err := r.sleep(ctx, min(deadline-now, left), store, api); err != nil {
			return err
		}
	}
}

// lateChanges returns the time of the last change at rest that is not known to be regular.
func (r *run) lateChanges(m *evidence.Step) time.Duration {
	so := evidence.Run{Steps: []evidence.Step{*m}, History: r.lab.store.History(), Entries: r.log.Entries()}
	return judge.AtRest(r.lesson.Reference, &so, 0, r.since()).Last
}

// quietTime returns the quiet time that a step of the scenario sets; zero means that the step sets
// none.
func quietTime(sc *scenario.Scenario, name string) time.Duration {
	for i := range sc.Steps {
		if sc.Steps[i].Name == name {
			return time.Duration(sc.Steps[i].Quiet)
		}
	}
	return 0
}

package lab

import (
	"context"
	"errors"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// Try changes one field of an object after the other, in one run, and returns what the controller
// did with each. The window is that of a lesson with the same object; zero means that there is none.
func (l *Lab) Try(ctx context.Context, t *scenario.Trials, window time.Duration, seed uint64) ([]inputs.Tried, error) {
	if window = carefully * window; window <= 0 || window > firstWindow {
		window = firstWindow
	}
	r := &run{
		lab: l, scenario: t.Scenario, window: max(window, time.Duration(t.Scenario.Rest.Quiet)), streams: 1, idle: idle, trying: true,
		out: &evidence.Run{Seed: seed},
	}
	out, err := r.do(ctx)
	var gone *GoneError
	if errors.As(err, &gone) && len(out.Steps) > 2 { // it has survived the creation of the object
		out.Gone, err = gone.Error(), nil
		out.Steps[len(out.Steps)-1].Crashed = true
	}
	if err != nil {
		return nil, err
	}
	return inputs.Judge(t, out), nil
}

// tryFailed notes that a step of a trial was refused. The next step restores the old value, which
// is still there.
func (r *run) tryFailed(step *scenario.Step, err error) error {
	if !scenario.Refused(err) || step.Patch == nil {
		return &StepError{Scenario: r.scenario.Name, Step: step.Name, Err: err}
	}
	r.out.Steps[len(r.out.Steps)-1].Refused = err.Error()
	return nil
}

// tryCrashed ends a run of trials after a panic, even if the controller goes on: only the first
// panic of a run can be attributed to a step.
func (r *run) tryCrashed(m *evidence.Step) error {
	if !r.trying || !r.output.Panicked() {
		return nil
	}
	m.Crashed = true
	return errStop
}

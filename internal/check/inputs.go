package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// inputShare is the part of the budget in which fields are changed: a quarter.
const inputShare = 4

// mostSuspects is the number of inputs that are tried again, to confirm that the controller crashes
// or does not come to rest because of them.
const mostSuspects = 12

// mostRestarts limits how often the trials of one scenario begin again after a crash.
const mostRestarts = 6

// trial collects the outcomes of the trials.
type trial struct {
	*check
	mu       sync.Mutex
	tried    []triedInput
	suspects []*scenario.Scenario // with one trial each
	left     int                  // trials that were not made
}

// triedInput is a trial with its outcome, and the scenario with all trials of the object.
type triedInput struct {
	inputs.Tried
	of *scenario.Trials
}

// tryInputs changes each field of the samples alone, without faults: does the controller react, and
// does it survive? What crashes it, or keeps it from coming to rest, is confirmed with a scenario of
// its own.
func (c *check) tryInputs(ctx context.Context) error {
	if len(c.Trials) == 0 {
		return nil
	}
	t := &trial{check: c}
	limited, cancel := c.forInputs(ctx)
	defer cancel()
	c.Observer.Phase("changing " + noun.Count(t.total(), "field"))
	c.Observer.Total(len(c.Trials))
	err := c.fleet.Each(limited, len(c.Trials), func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		err := t.all(ctx, w, c.Trials[i])
		c.Observer.Done("", time.Since(began))
		return err
	})
	if err == nil || limited.Err() != nil && ctx.Err() == nil {
		err = t.confirm(ctx)
	}
	t.conclude()
	return err
}

// forInputs limits the time for the inputs, if the check has a budget.
func (c *check) forInputs(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Budget <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.Budget/inputShare)
}

func (t *trial) total() (n int) {
	for _, one := range t.Trials {
		n += len(one.Trials)
	}
	return n
}

// all makes the trials of one scenario. After a crash, it goes on with the trial after it.
func (t *trial) all(ctx context.Context, w *fleet.Worker, of *scenario.Trials) error {
	rest := of
	for range mostRestarts {
		done, err := w.Try(ctx, rest, t.windowOf(of), t.Seed)
		var failed *fleet.LabError
		var setup *fleet.SetupError
		switch {
		case ctx.Err() != nil:
			t.missed(len(rest.Trials))
			return context.Cause(ctx)
		case errors.As(err, &failed) || errors.As(err, &setup):
			t.missed(len(rest.Trials))
			t.note(fmt.Sprintf("%s could not be tried: %v", noun.Count(len(rest.Trials), "change")+" of fields", err))
			return nil
		case err != nil:
			return err
		}
		next := slices.IndexFunc(done, func(d inputs.Tried) bool { return d.Outcome == inputs.Unknown })
		if next < 0 {
			next = len(done)
		}
		t.add(rest, done[:next])
		if rest = rest.From(next); rest == nil {
			return nil
		}
		if next == 0 {
			break // even the object itself has no result
		}
	}
	t.missed(len(rest.Trials))
	return nil
}

// windowOf returns the learnt window of a scenario with the same object.
func (t *trial) windowOf(of *scenario.Trials) time.Duration {
	title, _, _ := strings.Cut(of.Scenario.Name, "-inputs")
	if l := t.lessons[title+"-life"]; l != nil {
		return l.Window
	}
	return 0
}

func (t *trial) missed(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left += n
}

func (t *trial) add(of *scenario.Trials, done []inputs.Tried) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, d := range done {
		t.tried = append(t.tried, triedInput{d, of})
		if d.Outcome == inputs.Crashed || d.Outcome == inputs.Restless {
			t.suspects = append(t.suspects, of.Only(i))
		}
	}
}

// confirm runs the scenarios of suspects without a fault, several times each, and reports what they
// show like the findings of all other scenarios.
func (t *trial) confirm(ctx context.Context) error {
	suspects := t.suspects[:min(len(t.suspects), mostSuspects)]
	if n := len(t.suspects) - len(suspects); n > 0 {
		t.note(noun.Count(n, "more change") + " of fields may crash the controller, or keep it from coming to rest; they were not confirmed")
	}
	if len(suspects) == 0 {
		return nil
	}
	t.Observer.Phase("confirming " + noun.Count(len(suspects), "input"))
	t.Observer.Total(len(suspects))
	return t.fleet.Each(ctx, len(suspects), func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		l, err := w.Learn(ctx, suspects[i], t.Seed, true)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			t.confirmed(l)
		default: // the controller never comes to rest, but no loop was found
			t.note(fmt.Sprintf("scenario %s: %v", suspects[i].Name, err))
		}
		t.Observer.Done("", time.Since(began))
		return nil
	})
}

// confirmed adds the findings of a scenario with one input. The scenario itself gets no faults.
func (t *trial) confirmed(l *fleet.Lesson) {
	t.check.mu.Lock()
	t.result.Scenarios[l.Scenario.Name] = l.Scenario
	t.check.mu.Unlock()
	t.tally.learnt(l.Runs)
	for _, f := range l.Findings {
		if f.Verdict == judge.Crashed || f.Verdict == judge.HotLoop {
			t.faultless(f, l)
		}
	}
}

// conclude adds a remark for each field without an effect, and the counts.
func (t *trial) conclude() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []inputs.Tried
	for _, d := range t.tried {
		all = append(all, d.Tried)
	}
	count := map[inputs.Outcome]int{}
	for _, d := range all {
		count[d.Outcome]++
	}
	t.note(fmt.Sprintf("fields changed and changed back: %d; with an effect %d, without %d, refused %d; not tried %d",
		len(all), count[inputs.Effect], count[inputs.Inert], count[inputs.Refused], t.left))
	if !inputs.Handled(all) {
		if len(all) > 0 {
			t.note("no change of a field had an effect, so no field is reported; check whether the samples are complete enough for the controller to work")
		}
		return
	}
	for _, f := range inert(t.tried) {
		t.check.mu.Lock()
		t.result.Report.Add(f)
		t.check.mu.Unlock()
	}
}

// inert returns a remark for each field whose changes had no effect.
func inert(tried []triedInput) (found []judge.Finding) {
	kinds := map[string][]triedInput{}
	for _, d := range tried {
		kinds[d.of.KindGroup] = append(kinds[d.of.KindGroup], d)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		var all []inputs.Tried
		for _, d := range kinds[kind] {
			all = append(all, d.Tried)
		}
		for _, i := range inputs.InertFields(all) {
			d := kinds[kind][i]
			found = append(found, judge.Inert(d.of.Scenario.Name, d.Step, d.of.Object, kind, d.Field, d.Verb, string(d.Value)))
		}
	}
	return found
}

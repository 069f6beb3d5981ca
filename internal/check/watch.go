package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// watch watches the rests of all scenarios for the horizon. It learns scenarios again if
// one of their rests was only a plateau, or if something is written regularly at rest.
func (c *check) watch(ctx context.Context) error {
	replaysFault := c.Only && len(c.First) > 0 // its scenario already has the learnt pauses
	compared := c.comparedRests()
	if c.Horizon <= 0 || replaysFault || c.hasEnough() && len(compared) == 0 {
		return nil
	}
	rests, needed := inFront(restsOf(c.comparable()), c.keys(), compared)
	if len(rests) == 0 {
		return nil
	}
	if err := c.enlarge(ctx, len(rests), c.costOfWatching()); err != nil {
		return err
	}
	n := len(rests)
	if !c.EveryRest {
		n = withinEstimate(c.Horizon, c.faultTime(), n, c.fleet.Len())
	}
	left := c.left()
	horizon, n := withinBudget(c.Horizon, left, n, c.fleet.Len())
	if n < needed {
		horizon, n = min(c.Horizon, max(horizon, minHorizon)), needed
	}
	share := shareOf(left, time.Now())
	c.Observer.Phase(fmt.Sprintf("watching the controller at rest, %s for %s", noun.Count(n, "time"), horizon.Round(time.Second)))
	c.Observer.Total(n)
	var mu sync.Mutex
	seen := map[string][]*lab.Watched{}
	err := c.fleet.Each(ctx, n, func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		if i >= needed && share.over(began) {
			return nil
		}
		found, err := w.Watch(ctx, c.lessons[rests[i].Scenario], rests[i].Step, horizon, c.Seed)
		var failed *fleet.LabError
		if errors.As(err, &failed) {
			found, err = &lab.Watched{Step: rests[i].Step, Failed: failed.Reason()}, nil
		}
		if err != nil {
			return err
		}
		c.Observer.Done("", time.Since(began))
		mu.Lock()
		defer mu.Unlock()
		seen[rests[i].Scenario] = append(seen[rests[i].Scenario], found)
		return nil
	})
	if err != nil {
		return err
	}
	c.watched(horizon, numberOf(seen), len(rests), seen)
	if c.hasEnough() {
		return nil
	}
	return c.relearn(ctx, seen)
}

// numberOf returns the number of rests that were watched.
func numberOf(seen map[string][]*lab.Watched) (n int) {
	for _, found := range seen {
		n += len(found)
	}
	return n
}

// costOfWatching returns the cost of a lab that watches rests: it runs a scenario, and then waits.
func (c *check) costOfWatching() lab.Cost {
	took := time.Duration(0)
	for _, l := range c.lessons {
		took = max(took, l.Took)
	}
	return whileWaiting(c.cost(), took, c.Horizon)
}

// faultTime estimates the time for all planned faults.
func (c *check) faultTime() (total time.Duration) {
	for _, l := range c.lessons {
		total += l.Took * time.Duration(len(l.Plan.Faults))
	}
	return total / time.Duration(c.fleet.Len())
}

// comparable returns those scenarios that have a reference, in the form in which they were learnt.
func (c *check) comparable() (scenarios []*scenario.Scenario) {
	for _, sc := range c.Scenarios {
		if l := c.lessons[sc.Name]; l != nil && l.Reference != nil {
			scenarios = append(scenarios, l.Scenario)
		}
	}
	return scenarios
}

// watched adds the observations at rest to the report.
func (o *outcome) watched(horizon time.Duration, n, of int, seen map[string][]*lab.Watched) {
	r := o.result.Report
	note := fmt.Sprintf("at rest, the controller was watched for %s, %s", horizon.Round(time.Second/10), noun.Count(n, "time"))
	if horizon < o.Horizon {
		note += fmt.Sprintf("; without the budget, it would have been %s", o.Horizon)
	}
	if n < of {
		note += fmt.Sprintf("; %s were not watched, to save time; --horizon %s without a budget watches all", noun.Count(of-n, "other rest"), o.Horizon)
	}
	r.Notes = append(r.Notes, note)
	for _, name := range sortedNames(seen) {
		for _, w := range seen[name] {
			if w.Horizon > 0 {
				o.result.Watched[Rest{name, w.Step}] = w.Horizon
			}
			for _, remark := range remarks(w) {
				r.Notes = append(r.Notes, fmt.Sprintf("scenario %s, step %s: %s", name, w.Step, remark))
			}
			for _, f := range w.Findings {
				o.loops(f, w)
			}
		}
	}
}

// remarks describes what was seen at one rest, except for findings.
func remarks(w *lab.Watched) (all []string) {
	switch {
	case w.Horizon == 0:
		all = append(all, "the rest was not watched: "+cmp.Or(w.Failed, "the run ended before it"))
	case w.Quiet > 0:
		all = append(all, fmt.Sprintf("%s changed again after the controller seemed to be at rest; this step now has a quiet time of %s", w.What, w.Quiet.Round(time.Second/10)))
	case w.Endless:
		all = append(all, w.What+" still changed when Koboshi stopped watching; the check compares the state in which it first came to rest")
	}
	for _, beat := range w.Beats {
		all = append(all, "at rest, the controller or another client writes "+beat+"; these fields are not compared")
	}
	return all
}

// loops reports a loop, or Events, that were seen at rest. Other scenarios usually have the same.
func (o *outcome) loops(f judge.Finding, w *lab.Watched) {
	r := o.result.Report
	known := slices.ContainsFunc(r.Findings, func(other judge.Finding) bool { return other.Verdict == f.Verdict && other.Sentence == f.Sentence }) ||
		slices.ContainsFunc(r.Remarks, func(other judge.Finding) bool { return other.ID == f.ID })
	if known {
		return
	}
	f.WatchedSeconds = w.Horizon.Seconds()
	f.Seed, f.FoundAfterRuns, f.FoundAfterSeconds = o.Seed, o.tally.runs(), time.Since(o.began).Seconds()
	o.kept(&f, w.Trace)
	r.Add(f)
}

// relearn learns again those scenarios in which a rest was only a plateau, or in which something is
// written regularly at rest. The quiet time of a step also applies to the steps of other scenarios
// that do the same, and the fields that are written regularly are ignored in all scenarios.
func (c *check) relearn(ctx context.Context, seen map[string][]*lab.Watched) error {
	again := c.affordable(amended(c.comparable(), seen))
	if len(again) == 0 {
		return nil
	}
	c.Observer.Phase(fmt.Sprintf("learning %s again, with longer rests", noun.Count(len(again), "scenario")))
	c.Observer.Total(len(again))
	return c.fleet.Each(ctx, len(again), func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		if i >= c.fleet.Len() && c.Budget > 0 && float64(began.Sub(c.began)) >= againShare*float64(c.Budget) {
			c.notLearntAgain(again[i]) // the lessons before it took longer than estimated
			return nil
		}
		l, err := w.Learn(ctx, again[i], c.Seed, c.Generated)
		var setup *fleet.SetupError
		var failed *fleet.LabError
		if errors.As(err, &setup) || errors.As(err, &failed) {
			c.note(fmt.Sprintf("scenario %s could not be learned again with longer rests: %v", again[i].Name, err))
			return nil // the first lesson remains
		}
		if err != nil {
			return err
		}
		c.Observer.Done("", time.Since(began))
		c.forget(l.Scenario.Name)
		c.learnt(l)
		return nil
	})
}

// forget removes the results of a scenario without a fault from the report, before the scenario is
// described again.
func (o *outcome) forget(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.result.Report
	r.Scenarios = slices.DeleteFunc(r.Scenarios, func(s report.Scenario) bool { return s.Name == name })
	if l := o.lessons[name]; l != nil {
		r.Findings, r.Remarks = withoutScenario(r.Findings, l.Findings, name), withoutScenario(r.Remarks, l.Findings, name)
	}
}

// withoutScenario removes a scenario from the findings that it showed. A finding that another
// scenario showed as well stays.
func withoutScenario(all, shown []judge.Finding, name string) (kept []judge.Finding) {
	for _, f := range all {
		if slices.ContainsFunc(shown, func(old judge.Finding) bool { return old.ID == f.ID }) {
			in := slices.DeleteFunc(append([]string{f.Scenario}, f.AlsoIn...), func(scenario string) bool { return scenario == name })
			if len(in) == 0 {
				continue
			}
			f.Scenario, f.AlsoIn = in[0], in[1:]
		}
		kept = append(kept, f)
	}
	return kept
}

func sortedNames(seen map[string][]*lab.Watched) []string { return slices.Sorted(maps.Keys(seen)) }

// amended returns copies of the scenarios that must be learnt again: with a quiet time for
// each step whose rest was a plateau, with the fields that are written regularly in the
// ignore list, and with the interval of these writes.
func amended(scenarios []*scenario.Scenario, seen map[string][]*lab.Watched) (again []*scenario.Scenario) {
	quiet, ignore := map[string]scenario.Duration{}, []string{}
	round := scenario.Duration(0)
	byName := map[string]*scenario.Scenario{}
	for _, sc := range scenarios {
		byName[sc.Name] = sc
	}
	for _, name := range sortedNames(seen) {
		for _, w := range seen[name] {
			ignore, round = append(ignore, w.Ignore...), max(round, scenario.Duration(w.Round))
			if w.Quiet > 0 {
				for path, step := range paths(byName[name]) {
					if step.Name == w.Step {
						quiet[path] = max(quiet[path], scenario.Duration(w.Quiet))
					}
				}
			}
		}
	}
	slices.Sort(ignore)
	ignore = slices.Compact(ignore)
	for _, sc := range scenarios {
		if next, changed := amend(sc, quiet, ignore, round); changed {
			again = append(again, next)
		}
	}
	return again
}

func amend(sc *scenario.Scenario, quiet map[string]scenario.Duration, ignore []string, round scenario.Duration) (next *scenario.Scenario, changed bool) {
	copied := *sc
	copied.Steps = slices.Clone(sc.Steps)
	for _, line := range ignore {
		if !slices.Contains(copied.Ignore, line) {
			copied.Ignore = append(slices.Clone(copied.Ignore), line)
			changed = true
		}
	}
	// A round that the scenario sets takes precedence.
	if copied.Rest.Round == 0 && round > 0 {
		copied.Rest.Round, changed = round, true
	}
	for path, step := range paths(&copied) {
		if q := quiet[path]; q > step.Quiet {
			step.Quiet, changed = q, true
		}
	}
	return &copied, changed
}

// Package check injects a fault at every write of a controller and reports whether the
// controller recovers.
//
//	scenarios ─learn─▶ lessons ─plan─▶ queue ─run, judge─▶ suspicions ─confirm─▶ findings ─report
//	             │                        │                     │
//	             └────────────────────────┴─────────────────────┴──▶ fleet of labs
//
// A lab is a separate process that runs a complete Kubernetes cluster. This package
// decides what the labs run, and in which order.
package check

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// ErrNothing reports that there is nothing to check.
var ErrNothing = errors.New("there is no scenario to check")

// check is one check in progress.
type check struct {
	*outcome
	fleet *fleet.Fleet
}

func newCheck(o Options) *check {
	labs := fleet.Options{
		Program: o.Program, Dir: o.Dir, Lab: lab.Config{Subject: o.Subject, Profile: o.Profile, OldServer: o.OldServer, Kubernetes: o.Kubernetes},
	}
	return &check{outcome: newOutcome(o), fleet: fleet.New(labs)}
}

// Run runs a check. An error means that the controller could not be checked, never that
// the controller has a bug.
func Run(ctx context.Context, o Options) (*Result, error) {
	if len(o.Scenarios) == 0 {
		return nil, ErrNothing
	}
	c := newCheck(o)
	if err := c.withoutDown(); err != nil {
		return nil, err
	}
	defer c.fleet.Stop()
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	if err := c.learn(ctx); err != nil {
		return nil, err
	}
	if err := c.idle(); err != nil {
		return nil, err
	}
	queue := c.plan()
	if c.PlanOnly {
		return c.result, nil
	}
	if err := c.enlarge(ctx, fleet.WorkFor(len(queue))); err != nil {
		return nil, err
	}
	suspicions, err := c.run(ctx, queue)
	if err != nil {
		return nil, err
	}
	return c.report(suspicions), nil
}

// withoutDown removes from generated scenarios the steps that run while the controller is
// down, if the API server would have to call the controller's webhooks in these steps.
func (c *check) withoutDown() error {
	if !c.Generated || len(c.Subject.Webhooks) == 0 {
		return nil
	}
	var kept []*scenario.Scenario
	for _, sc := range c.Scenarios {
		for _, step := range sc.Steps {
			if step.WhileDown && sc != nil {
				sc = sc.Without(step.Name)
			}
		}
		if sc != nil {
			kept = append(kept, sc)
		}
	}
	if len(kept) == 0 {
		return ErrNothing
	}
	c.Scenarios = kept
	c.result.Report.Notes = append(c.result.Report.Notes,
		"nothing is changed while the controller is down, because the API server would have to call its webhooks")
	return nil
}

// start starts the labs for learning.
func (c *check) start(ctx context.Context) error {
	n := c.Workers
	if n == 0 {
		n = fleet.Size(runtime.NumCPU(), lab.Cost{}, 0, 0)
	}
	c.Observer.Phase("starting " + count(n, "plane"))
	return c.fleet.Grow(ctx, n)
}

// enlarge starts as many more labs as the machine has room for, given the learnt cost of a
// lab. The fleet never grows beyond work, the number of labs that have enough to do.
func (c *check) enlarge(ctx context.Context, work int) error {
	if c.Workers > 0 {
		return nil
	}
	n := fleet.Size(runtime.NumCPU(), c.highestCost(), fleet.FreeMemory(), work)
	if n <= c.fleet.Len() {
		return nil
	}
	c.Observer.Phase(fmt.Sprintf("starting %s", count(n-c.fleet.Len(), "more plane")))
	return c.fleet.Grow(ctx, n)
}

// highestCost returns the cost of the most expensive scenario.
func (c *check) highestCost() (most lab.Cost) {
	for _, l := range c.lessons {
		most.Busy, most.Memory = max(most.Busy, l.Cost.Busy), max(most.Memory, l.Cost.Memory)
	}
	return most
}

// learn runs all scenarios without faults.
func (c *check) learn(ctx context.Context) error {
	first := min(c.fleet.Len(), len(c.Scenarios))
	if err := c.learnAll(ctx, c.Scenarios[:first]); err != nil {
		return err
	}
	rest := c.Scenarios[first:]
	if len(rest) == 0 {
		return nil
	}
	// The cost of a lab is now known.
	if err := c.enlarge(ctx, len(rest)); err != nil {
		return err
	}
	return c.learnAll(ctx, rest)
}

// learnAll runs the given scenarios without faults. Once the budget is used up, it skips
// all scenarios except the first one of the check.
func (c *check) learnAll(ctx context.Context, scenarios []*scenario.Scenario) error {
	c.Observer.Phase(fmt.Sprintf("learning %s without faults", count(len(scenarios), "scenario")))
	c.Observer.Total(len(scenarios))
	return c.fleet.Each(ctx, len(scenarios), func(ctx context.Context, w *fleet.Worker, i int) error {
		sc, began := scenarios[i], time.Now()
		if c.Budget > 0 && sc != c.Scenarios[0] && time.Since(c.began) > c.Budget {
			c.notLearnt(sc)
			return nil
		}
		l, err := w.Learn(ctx, sc, c.Seed, c.Generated)
		if err != nil {
			return err
		}
		c.Observer.Done("", time.Since(began))
		c.learnt(l)
		return nil
	})
}

// An IdleError reports that the controller wrote nothing in any scenario, so there is no
// write at which to inject a fault, and nothing to compare.
type IdleError struct{ Said string }

func (e *IdleError) Error() string {
	said := ""
	if e.Said != "" {
		said = fmt.Sprintf("; the last line it printed: %s", e.Said)
	}
	return "the controller wrote nothing in any scenario: check whether it reconciles the objects that the scenarios apply, and in which namespace" + said
}

// idle returns an IdleError if the controller wrote nothing in any scenario. If a scenario
// has external endpoints, idle returns nil, because the controller may have written to
// them.
func (c *check) idle() error {
	said := ""
	for _, sc := range c.Scenarios {
		l := c.lessons[sc.Name]
		if l == nil || l.Writes > 0 || len(l.Findings) > 0 || len(sc.Endpoints) > 0 {
			return nil
		}
		said = l.Said
	}
	return &IdleError{said}
}

// plan merges the faults of all scenarios into one queue.
func (c *check) plan() []plan.Planned {
	var plans []plan.Plan
	for _, sc := range c.Scenarios {
		if l := c.lessons[sc.Name]; l != nil {
			plans = append(plans, l.Plan)
			c.result.Skipped = append(c.result.Skipped, l.Plan.Skipped...)
		}
	}
	return c.order(plans)
}

func (c *check) order(plans []plan.Plan) []plan.Planned {
	if c.StopAtFirst && len(c.result.Report.Findings) > 0 {
		return nil
	}
	learnt := func(scenario string) bool { l := c.lessons[scenario]; return l != nil && l.Reference != nil }
	c.result.Plan, c.result.Report.LeftToShards = queueOf(&c.Options, plans, learnt)
	for _, p := range c.result.Plan {
		c.tally.planned(p)
	}
	return c.result.Plan
}

// run runs all faults of the queue and confirms suspicions.
func (c *check) run(ctx context.Context, queue []plan.Planned) ([]judge.Finding, error) {
	c.Observer.Phase("injecting faults")
	c.Observer.Total(len(queue))
	limited, stop := context.WithCancel(ctx)
	defer stop()
	s := &suspicions{outcome: c.outcome, enough: stop}
	deadline := time.Now().Add(c.Budget)
	err := c.fleet.Each(limited, len(queue), func(ctx context.Context, w *fleet.Worker, i int) error {
		p := queue[i]
		if c.Budget > 0 && time.Now().After(deadline) {
			c.tally.leftOut(p, "the budget was used up")
			return nil
		}
		return s.try(ctx, w, p)
	})
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = nil // not an error: StopAtFirst ended the check
	}
	return s.found, err
}

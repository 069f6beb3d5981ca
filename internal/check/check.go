// Package check knocks a controller over at every write and sees whether it gets
// up.
//
//	scenarios ─learn─▶ lessons ─plan─▶ queue ─run, judge─▶ suspicions ─confirm─▶ findings ─report
//	             │                        │                     │
//	             └────────────────────────┴─────────────────────┴──▶ fleet of labs
//
// A lab is a process of its own with a whole Kubernetes in it. This package is
// what stands before them: it decides what is run, and in which order.
package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Options say what is checked, and how thoroughly.
type Options struct {
	Subject   subject.Subject
	Scenarios []*scenario.Scenario
	// Generated says that the scenarios were made from samples: a step that the
	// cluster refuses is then left out.
	Generated bool
	// Profile names the plane's controllers; OldServer has the API server refuse
	// streaming lists.
	Profile   string
	OldServer bool
	// Seed is that of all random choices.
	Seed uint64
	// Budget is how long faults may be run, and before that how long scenarios may
	// be learnt; zero means until all are done.
	Budget time.Duration
	// Shard and Shards say which part of the plan is run; zero Shards means all.
	Shard, Shards int
	// Workers is how many labs run at once; zero means as many as the machine has
	// room for.
	Workers int
	// StopAtFirst ends the check at the first confirmed finding.
	StopAtFirst bool
	// Faults are the kinds that are run; empty means all.
	Faults []fault.Kind
	// First are faults that are run before the others, by scenario: those that
	// found something the last time.
	First map[string][]fault.Fault
	// Only runs nothing but First.
	Only bool
	// PlanOnly runs no fault.
	PlanOnly bool
	// Sources are files of the project to which a finding can be pinned; Files are
	// those that scenarios were read from, by name.
	Sources report.Sources
	Files   map[string]string
	// Command is how the check was called, for the report.
	Command string
	// Observer is told what happens; nil means nobody is.
	Observer Observer
	// Program is the executable of a lab, its arguments included.
	Program []string
	// Dir is a folder for files that are of no use later.
	Dir string
}

// Observer is told how far a check has come.
type Observer interface {
	Phase(name string)
	Total(faults int)
	Done(kind fault.Kind, took time.Duration)
	Found(judge.Finding)
	Note(text string)
}

// Result is what a check came to.
type Result struct {
	Report *report.Report
	// Traces are those of the findings, by ID; Scenarios the scenarios that were
	// really run, by name.
	Traces    map[string][]trace.Entry
	Scenarios map[string]*scenario.Scenario
	// Plan is what was to be run, Skipped what was not worth it.
	Plan    []plan.Planned
	Skipped []plan.Skipped
}

// ErrNothing is a check without anything to check.
var ErrNothing = errors.New("there is no scenario")

// check is one check under way.
type check struct {
	Options
	fleet   *fleet
	began   time.Time
	lessons map[string]*lesson
	result  *Result
	tally   *tally
}

// lesson is a lab's lesson with the file by which other labs get it.
type lesson struct {
	*lab.Lesson
	file string
}

// Run checks. An error means that it could not be checked, never that the
// controller has a fault.
func Run(ctx context.Context, o Options) (*Result, error) {
	if len(o.Scenarios) == 0 {
		return nil, ErrNothing
	}
	c := newCheck(o)
	if err := c.withoutDown(); err != nil {
		return nil, err
	}
	defer c.fleet.stop()
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
	if err := c.enlarge(ctx, len(queue)/worthStarting); err != nil {
		return nil, err
	}
	suspicions, err := c.run(ctx, queue)
	if err != nil {
		return nil, err
	}
	return c.report(suspicions), nil
}

// withoutDown leaves out of generated scenarios what is done while the controller
// is down, if the API server would have to ask its webhooks then.
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
		"nothing is changed while the controller is down: the API server would ask its webhooks")
	return nil
}

// learn has each scenario run without a fault.
func (c *check) learn(ctx context.Context) error {
	first := min(len(c.fleet.workers), len(c.Scenarios))
	if err := c.learnAll(ctx, c.Scenarios[:first]); err != nil {
		return err
	}
	rest := c.Scenarios[first:]
	if len(rest) == 0 {
		return nil
	}
	// Now it is known what a lab costs.
	if err := c.enlarge(ctx, len(rest)); err != nil {
		return err
	}
	return c.learnAll(ctx, rest)
}

// learnAll learns one scenario at least, and the others while there is time.
func (c *check) learnAll(ctx context.Context, scenarios []*scenario.Scenario) error {
	c.Observer.Phase(fmt.Sprintf("learning %s without a fault", count(len(scenarios), "scenario")))
	c.Observer.Total(len(scenarios))
	return c.fleet.each(ctx, len(scenarios), func(ctx context.Context, w *worker, i int) error {
		sc, began := scenarios[i], time.Now()
		if c.Budget > 0 && sc != c.Scenarios[0] && time.Since(c.began) > c.Budget {
			c.notLearnt(sc)
			return nil
		}
		l, err := w.learn(ctx, sc, c.Seed, c.Generated)
		if err != nil {
			return err
		}
		c.Observer.Done("", time.Since(began))
		return c.learnt(l)
	})
}

// An IdleError is a controller that wrote nothing in any scenario: there is nothing
// to knock it over at, and nothing that it could be found to do wrong.
type IdleError struct{ Said string }

func (e *IdleError) Error() string {
	said := ""
	if e.Said != "" {
		said = fmt.Sprintf("; the last line it printed: %s", e.Said)
	}
	return "the controller wrote nothing in any scenario: see whether it reconciles what they apply, and in which namespace" + said
}

// idle is an IdleError if it is one. Who writes outside, to an endpoint, is not.
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

// plan orders the faults of all scenarios into one queue.
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

// run has one fault after the other applied, and what looks wrong confirmed.
func (c *check) run(ctx context.Context, queue []plan.Planned) ([]judge.Finding, error) {
	c.Observer.Phase("knocking it over")
	c.Observer.Total(len(queue))
	limited, stop := context.WithCancel(ctx)
	defer stop()
	s := &suspicions{check: c, enough: stop}
	deadline := time.Now().Add(c.Budget)
	err := c.fleet.each(limited, len(queue), func(ctx context.Context, w *worker, i int) error {
		p := queue[i]
		if c.Budget > 0 && time.Now().After(deadline) {
			c.tally.leftOut(p, "the budget was used up")
			return nil
		}
		return s.try(ctx, w, p)
	})
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = nil // one finding was enough
	}
	return s.found, err
}

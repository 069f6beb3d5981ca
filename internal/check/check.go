// Package check injects a fault at every write of a controller and reports whether the
// controller recovers.
//
//	samples ─try inputs─┐
//	scenarios ─learn────┴▶ lessons ─watch─▶ lessons ─plan─▶ queue ─run, judge─▶ suspicions ─confirm─▶ findings ─report
//	             │                    │                        │                     │
//	             └────────────────────┴────────────────────────┴─────────────────────┴──▶ fleet of labs
//
// A lab is a separate process that runs a complete Kubernetes cluster. This package
// decides what the labs run, and in which order.
package check

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// ErrNothing reports that there is nothing to check.
var ErrNothing = errors.New("there is no scenario to check")

// errWorkloads reports that the automatically chosen profile is too small.
var errWorkloads = errors.New("the controller makes workloads, which need the profile workloads")

// check is one check in progress.
type check struct {
	*outcome
	fleet      *fleet.Fleet
	suspicions *suspicions
	queue      []plan.Planned
	planned    bool   // queue is complete
	done       []bool // which faults of the queue were run
	pace       pace
	tried      bool                 // the inputs were tried
	triedFor   time.Duration        // the time that this took
	inputsBy   time.Time            // when lessons end so that the inputs are tried; zero if they need not
	late       []*scenario.Scenario // scenarios whose lessons ended for that reason
}

func newCheck(o Options) *check {
	labs := fleet.Options{
		Program: o.Program, Dir: o.Dir, Hurry: o.Hurry,
		Lab: lab.Config{Subject: o.Subject, Profile: o.Profile, OldServer: o.OldServer, Kubernetes: o.Kubernetes, Programs: o.Programs},
	}
	c := &check{outcome: newOutcome(o), fleet: fleet.New(labs)}
	c.suspicions = newSuspicions(c.outcome)
	return c
}

// Run runs a check. An error means that the controller could not be checked, never that the
// controller has a bug. If the check is interrupted, Run returns the results that are known by
// then.
//
// If the runs without faults show that the automatically chosen profile lacks controllers, Run
// starts again in a larger profile.
func Run(ctx context.Context, o Options) (*Result, error) {
	if len(o.Scenarios) == 0 {
		return nil, ErrNothing
	}
	began := time.Now()
	result, err := run(ctx, o)
	if !errors.Is(err, errWorkloads) {
		return result, err
	}
	if o.Budget > 0 {
		o.Budget = max(o.Budget-time.Since(began), time.Millisecond) // zero would mean no limit
	}
	o.Profile, o.ProfileReason = subject.ProfileWorkloads, "the controller made workloads"
	return run(ctx, o)
}

// run runs a check in the given profile.
func run(ctx context.Context, o Options) (*Result, error) {
	c := newCheck(o)
	if o.Upgrade != nil {
		if c.Scenarios = upgradable(o.Scenarios, o.Generated); len(c.Scenarios) == 0 {
			return nil, ErrNothing
		}
	}
	if c.ProfileChosen {
		c.Observer.Note(fmt.Sprintf("profile %s: %s (use --profile to choose another)", c.Profile, c.ProfileReason))
	}
	if err := c.withoutDown(); err != nil {
		return nil, err
	}
	err := c.work(ctx)
	c.fleet.Stop()
	return c.ended(ctx, err)
}

// work runs all phases of the check, within the budget if there is one.
func (c *check) work(ctx context.Context) error {
	if c.Budget > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, c.Budget, errBudget)
		defer cancel()
		ctx = limited
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	if err := c.learn(ctx); err != nil {
		return err
	}
	if c.Upgrade != nil && len(c.lessons) == 0 {
		return c.upgrade(ctx)
	}
	if len(c.lessons) == 0 {
		return nil // the report has what the inputs have shown
	}
	if err := c.idle(); err != nil {
		return c.reportIdle(err)
	}
	if c.Upgrade != nil {
		return c.upgrade(ctx)
	}
	if err := c.tryInputs(ctx); err != nil { // unless learn has done it
		return err
	}
	if err := c.convert(ctx); err != nil {
		return err
	}
	if err := c.watch(ctx); err != nil {
		return err
	}
	if err := c.tryPaths(ctx); err != nil {
		return err
	}
	c.plan()
	if c.PlanOnly {
		return nil
	}
	cost := c.costOf(c.queue)
	c.reduce(cost)
	if err := c.enlarge(ctx, fleet.WorkFor(len(c.queue)), cost); err != nil {
		return err
	}
	return c.run(ctx)
}

// withoutDown removes steps from generated scenarios, see WithoutDown.
func (c *check) withoutDown() error {
	if !c.Generated {
		return nil
	}
	kept, note := WithoutDown(c.Scenarios, c.Subject)
	if len(kept) == 0 {
		return ErrNothing
	}
	c.Scenarios = kept
	if note != "" {
		c.result.Report.Notes = append(c.result.Report.Notes, note)
	}
	return nil
}

// WithoutDown removes steps from generated scenarios: those steps that run while the controller is
// down and in which the API server would have to call the controller's webhooks. The note explains
// why.
func WithoutDown(all []*scenario.Scenario, s subject.Subject) (kept []*scenario.Scenario, note string) {
	if len(s.Webhooks) == 0 {
		return all, ""
	}
	left := false
	for _, sc := range all {
		for _, step := range sc.Steps {
			if step.WhileDown && sc != nil && lab.NeedsWebhooks(&s, &step) {
				sc, left = sc.Without(step.Name), true
			}
		}
		if sc != nil {
			kept = append(kept, sc)
		}
	}
	if left {
		note = "objects that the controller's webhooks cover are not changed while the controller is down, because the API server would have to call the webhooks"
	}
	return kept, note
}

// start starts the labs for learning.
func (c *check) start(ctx context.Context) error {
	n := c.Workers
	if n == 0 {
		n = fleet.Size(runtime.GOMAXPROCS(0), lab.Cost{}, 0, 0)
	}
	c.Observer.Phase("starting " + noun.Count(n, "plane"))
	began := time.Now()
	defer func() { c.perPlane = time.Since(began) / time.Duration(n) }()
	return c.fleet.Grow(ctx, n)
}

// enlarge starts as many more labs as the machine has room for, given the cost of a lab. The parameter work,
// the number of labs that have enough to do, is an upper limit for the size of the fleet.
func (c *check) enlarge(ctx context.Context, work int, cost lab.Cost) error {
	if c.Workers > 0 {
		return nil
	}
	n := size(work, cost)
	if end, limited := ctx.Deadline(); limited {
		n = min(n, c.fleet.Len()+planesWithin(c.perPlane, time.Until(end)))
	}
	if n <= c.fleet.Len() {
		return nil
	}
	c.Observer.Phase(fmt.Sprintf("starting %s", noun.Count(n-c.fleet.Len(), "more plane")))
	if err := c.fleet.Grow(ctx, n); err != nil && ctx.Err() == nil {
		c.note(fmt.Sprintf("not all planes could be started: %v", err)) // those that run are enough
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// reduce ends labs for which the machine has no room, given the cost of a lab, if it is known. There may be some if many
// labs have tried inputs, or have watched the controller at rest, and each uses up to 5 % of a processor even if it only
// waits.
func (c *check) reduce(cost lab.Cost) {
	if c.Workers == 0 && cost.Busy > 0 {
		c.fleet.Shrink(size(c.fleet.Len(), cost))
	}
}

// size returns the number of labs for which the machine has room.
func size(work int, cost lab.Cost) int {
	return fleet.Size(runtime.GOMAXPROCS(0), cost, fleet.FreeMemory(), work)
}

// planesWithin returns the number of planes that can be started in a quarter of the time that is
// left. A loaded machine would use up the budget if it started as many planes as an idle machine.
func planesWithin(each, left time.Duration) int {
	return int(max(left, 0) / 4 / max(each, 1))
}

// cost returns the learnt cost of a lab: that of the most expensive scenario.
func (c *check) cost() (most lab.Cost) {
	for _, l := range c.lessons {
		most.Busy, most.Memory = max(most.Busy, l.Cost.Busy), max(most.Memory, l.Cost.Memory)
	}
	return most
}

// costOf returns the cost of a lab that runs a queue.
func (c *check) costOf(queue []plan.Planned) lab.Cost {
	running, waiting := c.timeFor(queue)
	return whileWaiting(c.cost(), running, waiting)
}

// whileWaiting returns the cost of a lab that also waits, for example for the end of a slow fault. Meanwhile, the
// lab leaves the processors to others.
func whileWaiting(cost lab.Cost, running, waiting time.Duration) lab.Cost {
	if waiting > 0 {
		cost.Busy *= float64(running) / float64(running+waiting)
	}
	return cost
}

// learn runs all scenarios without faults. A scenario that cannot be run is left out. After the first
// scenario of each lab, learn tries the inputs, because these find the most frequent bugs, and need no
// other scenario.
func (c *check) learn(ctx context.Context) error {
	first := min(max(c.fleet.Len(), 1), len(c.Scenarios))
	c.inputsBy = c.inputsAt()
	if err := c.learnAll(ctx, c.Scenarios[:first]); err != nil {
		return err
	}
	c.inputsBy = time.Time{}
	if c.needsWorkloads() {
		return errWorkloads
	}
	if c.mayReact() {
		if err := c.tryInputs(ctx); err != nil {
			return err
		}
	}
	if err := c.learnRest(ctx, slices.Concat(c.late, c.Scenarios[first:])); err != nil {
		return err
	}
	if c.needsWorkloads() {
		return errWorkloads
	}
	if c.Upgrade != nil {
		return nil // the old version may be able to run a scenario that the new one refuses
	}
	return c.nothingLearnt()
}

// postpone learns a scenario after the inputs.
func (c *check) postpone(sc *scenario.Scenario) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = append(c.late, sc)
}

// mayReact reports whether the controller may react to inputs. If it did nothing in its first scenarios,
// the others must first show that it does anything. That it did not come to rest in them is no obstacle.
func (c *check) mayReact() bool {
	for _, l := range c.lessons {
		if l.Writes > 0 {
			return true
		}
	}
	return len(c.lessons) == 0 && !c.neverUp
}

// learnRest runs the scenarios that are left, now that the cost of a lab is known.
func (c *check) learnRest(ctx context.Context, rest []*scenario.Scenario) error {
	if c.neverUp {
		for _, sc := range rest {
			c.notLearnt(sc, "the controller did not start in the other scenarios")
		}
		return nil
	}
	if len(rest) == 0 {
		return nil
	}
	c.reduce(c.cost())
	if err := c.enlarge(ctx, len(rest), c.cost()); err != nil {
		return err
	}
	return c.learnAll(ctx, rest)
}

// learnAll runs the given scenarios without faults.
func (c *check) learnAll(ctx context.Context, scenarios []*scenario.Scenario) error {
	what := noun.Count(len(scenarios), "scenario")
	if slices.ContainsFunc(scenarios, (*scenario.Scenario).HasSuite) {
		what = "the test suite"
	}
	c.Observer.Phase("learning " + what + " without faults")
	c.Observer.Total(len(scenarios))
	return c.fleet.Each(ctx, len(scenarios), func(ctx context.Context, w *fleet.Worker, i int) error {
		sc, began := scenarios[i], time.Now()
		if c.learntEnough(sc) {
			c.notLearnt(sc, whyEnough)
			return nil
		}
		lesson, cancel := c.forLesson(ctx)
		defer cancel()
		l, err := w.Learn(lesson, sc, c.Seed, c.Generated)
		switch {
		case errors.Is(err, errLesson):
			c.notLearnt(sc, whyEnough)
		case errors.Is(err, errInputsFirst):
			c.postpone(sc)
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			c.cannotLearn(sc, err)
		default:
			c.learnt(l)
			c.pace.add(time.Since(began), len(sc.Steps))
		}
		c.Observer.Done("", time.Since(began))
		return nil
	})
}

// left returns the part of the budget that is left, or zero if there is no budget.
func (c *check) left() time.Duration {
	if c.Budget <= 0 {
		return 0
	}
	return max(c.Budget-time.Since(c.began), time.Millisecond)
}

// cannotLearn records why a scenario cannot be run without a fault.
func (c *check) cannotLearn(sc *scenario.Scenario, err error) {
	why := err.Error()
	var failed *fleet.LabError
	if errors.As(err, &failed) {
		why = failed.Reason()
	}
	c.notLearnt(sc, why)
	if len(c.Scenarios) > 1 { // the error about a single scenario has the reason
		c.Observer.Note(fmt.Sprintf("scenario %s is left out: %s", sc.Name, strings.TrimPrefix(why, "scenario "+sc.Name+", ")))
	}
	var setup *fleet.SetupError
	c.mu.Lock()
	defer c.mu.Unlock()
	c.neverUp = len(c.lessons) == 0 && errors.As(err, &setup) && setup.Gone
	if setup != nil && setup.Printed != "" && c.printed == "" {
		c.printed = "\n  " + strings.ReplaceAll(setup.Printed, "\n", "\n  ")
	}
}

// nothingLearnt returns an error if no scenario could be run without a fault. If the inputs have shown
// something, the report says so instead.
func (c *check) nothingLearnt() error {
	left := c.result.Report.NotLearnt
	if len(c.lessons) > 0 || len(left) == 0 {
		return nil
	}
	if c.hasShown() {
		c.result.Report.Stopped = "no scenario could be run without a fault"
		return nil
	}
	if len(left) == 1 {
		return errors.New(left[0].Why + c.printed)
	}
	return fmt.Errorf("none of the %d scenarios could be run without a fault; the first: %s%s", len(left), left[0].Why, c.printed)
}

// An IdleError reports that the controller did none of its work in any scenario, so there is
// no write at which to inject a fault, and nothing to compare.
type IdleError struct {
	Said string
	// Suite reports whether a test suite drives the check.
	Suite bool
	// Refused reports whether the API server refused the controller's requests to become the
	// leader.
	Refused bool
	// Missing holds hints about everything that the controller requested but did not find.
	Missing []string
}

func (e *IdleError) Error() string {
	said := ""
	if e.Said != "" {
		said = fmt.Sprintf("; the last line it printed: %s", e.Said)
	}
	for _, missing := range e.Missing {
		said += "; " + missing
	}
	if e.Refused {
		return "the controller never became the leader, because the API server refused its requests for a Lease: add the permission to its role, or install the role for leader election as well" + said
	}
	if e.Suite {
		return "the controller wrote nothing while the test suite ran: check whether the suite uses the cluster in KUBECONFIG, and makes objects that the controller reconciles" + said
	}
	return "the controller wrote nothing in any scenario: check whether it reconciles the objects that the scenarios apply, and in which namespace" + said
}

// idle returns an IdleError if the controller wrote nothing in any scenario, or never became
// the leader. If a scenario has external endpoints, idle returns nil, because the controller
// may have written to them.
func (c *check) idle() error {
	e := &IdleError{Refused: true}
	wrote := false
	for _, sc := range c.Scenarios {
		l := c.lessons[sc.Name]
		if l == nil {
			continue
		}
		if len(sc.Endpoints) > 0 || slices.ContainsFunc(l.Findings, func(f judge.Finding) bool { return f.Verdict != judge.RBACMissing }) {
			return nil
		}
		wrote, e.Suite = wrote || l.Writes > 0, sc.HasSuite()
		e.Refused = e.Refused && l.Refused
		e.Said = l.Said
		for _, missing := range l.Missing {
			if !slices.Contains(e.Missing, missing) {
				e.Missing = append(e.Missing, missing)
			}
		}
	}
	if wrote && !e.Refused {
		return nil
	}
	return e
}

// reportIdle ends a check of a controller that did none of its work. If permissions are
// missing, the report lists them.
func (c *check) reportIdle(err error) error {
	if len(c.result.Report.Findings) == 0 {
		return err
	}
	c.result.Report.Idle = err.Error()
	return nil
}

// needsWorkloads reports whether the profile is too small for at least one scenario.
func (c *check) needsWorkloads() bool {
	for _, l := range c.lessons {
		if l != nil && c.isTooSmallFor(l) {
			return true
		}
	}
	return false
}

// plan merges the faults of all scenarios into one queue.
func (c *check) plan() {
	var plans []plan.Plan
	for _, sc := range c.Scenarios {
		if l := c.lessons[sc.Name]; l != nil {
			plans = append(plans, l.Plan)
			c.result.Skipped = append(c.result.Skipped, l.Plan.Skipped...)
		}
	}
	c.queue, c.planned = c.resume(c.order(plans)), true
	c.done = make([]bool, len(c.queue))
}

func (c *check) order(plans []plan.Plan) []plan.Planned {
	if c.hasEnough() {
		return nil
	}
	learnt := func(scenario string) bool { l := c.lessons[scenario]; return l != nil && l.Reference != nil }
	queue, whole, others := queueOf(&c.Options, plans, learnt, c.fits)
	if c.Handed != nil {
		queue = c.withoutUnlearnt(queue, learnt)
	}
	c.result.Plan = queue
	if c.Shards > 1 {
		c.result.Report.WholePlan, c.result.Report.LeftToShards = whole, others
	}
	for _, p := range c.result.Plan {
		c.tally.planned(p)
	}
	return c.result.Plan
}

// run runs the faults of the queue and confirms suspicions. Near the end of the budget, run begins
// no fault, because there would be no time to confirm a finding.
func (c *check) run(ctx context.Context) error {
	c.Observer.Phase("injecting faults")
	c.Observer.Total(len(c.queue))
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.suspicions.enough = func() { stop(errEnough) }
	if err := c.runFrom(limited, 0); err != nil {
		return err
	}
	more := c.secondKills()
	if len(more) == 0 {
		return nil
	}
	c.Observer.Phase("killing the controller again while it recovers")
	c.Observer.Total(len(more))
	begin := len(c.queue)
	c.enqueue(more)
	return c.runFrom(limited, begin)
}

// runFrom runs the faults of the queue from an index on.
func (c *check) runFrom(ctx context.Context, begin int) error {
	queue, late := c.queue[begin:], time.Duration(0)
	if c.Budget > 0 {
		late = c.Budget / confirmShare
	}
	tails := tailsOf(queue)
	work := fleet.Work{
		Calls: len(queue),
		Do: func(ctx context.Context, w *fleet.Worker, i int) (err error) {
			if c.suspicions.tooLate(c.left(), late, c.fleet.Len()) {
				return nil
			}
			c.done[begin+i], err = c.suspicions.try(ctx, w, queue[i], tails[i])
			return err
		},
		Then: c.suspicions.idle.assist,
	}
	if c.Workers == 0 {
		work.Most, work.Fewest = c.most, size(fleet.WorkFor(len(queue)), c.cost())
	}
	err := c.fleet.Share(ctx, work)
	if err == nil && slices.Contains(c.done, false) {
		return errBudget
	}
	return err
}

// most returns the largest number of labs that is worth its memory and starts while so many faults are left.
func (c *check) most(left int) int {
	n := fleet.Most(runtime.GOMAXPROCS(0), c.cost(), fleet.FreeMemory(), fleet.WorkFor(left))
	if c.Budget > 0 {
		n = min(n, c.fleet.Len()+planesWithin(c.perPlane, c.left()))
	}
	return n
}

package check

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

const (
	// learnShare is the share of the budget without inputs and paths that may be used for learning:
	// one half, or leastLearnShare, a quarter, if the planned faults need the rest. Without these
	// limits, a check of many scenarios would inject no fault. The next two are shares of the same
	// time.
	learnShare      = 2
	leastLearnShare = 4
	// againShare is the share of the budget after which no scenario is learnt again: three
	// quarters.
	againShare = 0.75
	// lessonShare is the share of the budget after which a lesson that is still running is ended:
	// 60 %. Some scenarios take much longer than those before them.
	lessonShare = 0.6
	// firstShare is the share of the budget after which the first scenarios wait until the inputs have
	// been tried: one sixth. The lesson of a controller that takes 20 s for each step, or does not end a
	// deletion, would take half of a budget of nine minutes, and would leave the processors idle.
	firstShare = 6
	// confirmShare is the largest share of the budget that is kept for the confirmation of what
	// was found: one eighth.
	confirmShare = 8
	whyAgain     = "it must be learnt again with longer rests, but the remaining budget is kept for the faults; increase --budget"
	whyEnough    = "learning it would use up the part of the budget that is kept for the faults; increase --budget"
)

// errLesson ends a lesson that takes too much of the budget, and errInputsFirst one for which the inputs
// would have to wait too long.
var (
	errLesson      = errors.New("the lesson took too long")
	errInputsFirst = errors.New("the inputs come first")
)

// pace measures how long it takes to learn a step. The zero value contains no measurement.
type pace struct {
	mu    sync.Mutex
	took  time.Duration
	steps int
}

func (p *pace) add(took time.Duration, steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took, p.steps = p.took+took, p.steps+steps
}

// estimate returns how long it takes to learn a number of steps, or 0 if that is unknown.
func (p *pace) estimate(steps int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.steps == 0 {
		return 0
	}
	return p.took / time.Duration(p.steps) * time.Duration(steps)
}

// used returns the time that the check has taken, without the time for inputs, which are tried while
// scenarios are still to be learnt.
func (c *check) used() time.Duration { return time.Since(c.began) - c.triedFor }

// forFaults returns the part of the budget for faults, with all that must be learnt for them. Inputs and
// paths have shares of their own.
func (c *check) forFaults() time.Duration {
	budget := c.Budget - c.triedFor
	if len(c.Paths) > 0 {
		budget -= c.Budget / pathShare
	}
	return budget
}

// learntEnough reports whether learning a scenario would use up the budget that the faults
// need. The first lesson is always allowed, because there would be no faults without it.
func (c *check) learntEnough(sc *scenario.Scenario) bool {
	if c.Budget <= 0 || c.PlanOnly {
		return false
	}
	used, budget := c.used(), c.forFaults()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lessons) == 0 {
		return false
	}
	return used+c.pace.estimate(len(sc.Steps)) >= budget/learnShare || used >= budget/leastLearnShare && c.faultTime() >= c.left()
}

// inputsAt returns the latest time at which the inputs are tried.
func (c *check) inputsAt() time.Time {
	if c.Budget <= 0 || len(c.Trials) == 0 {
		return time.Time{}
	}
	return c.began.Add(c.Budget / firstShare)
}

// forLesson returns the context of a lesson. It ends when the inputs must be tried. If another scenario
// has been learnt, it ends when the faults need the rest of the budget.
func (c *check) forLesson(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.inputsBy.IsZero() {
		return context.WithDeadlineCause(ctx, c.inputsBy, errInputsFirst)
	}
	if c.Budget <= 0 || c.PlanOnly || len(c.lessons) == 0 {
		return context.WithCancel(ctx)
	}
	within := c.triedFor + time.Duration(lessonShare*float64(c.forFaults()))
	return context.WithDeadlineCause(ctx, c.began.Add(within), errLesson)
}

// timeAgain estimates how long it takes to learn a scenario again: the time of the first learning,
// plus, for each run, the quiet times that were added since then.
func (c *check) timeAgain(sc *scenario.Scenario) time.Duration {
	took := c.pace.estimate(len(sc.Steps))
	l := c.lessons[sc.Name]
	if l == nil || l.Scenario == nil {
		return took
	}
	added := time.Duration(0)
	for i := range min(len(sc.Steps), len(l.Scenario.Steps)) {
		added += time.Duration(sc.Steps[i].Quiet - l.Scenario.Steps[i].Quiet)
	}
	return took + added*time.Duration(l.Runs)
}

// affordable returns the scenarios that can be learnt again within the budget, and leaves
// out the others. If no scenario with a reference would remain, the first one is kept.
func (c *check) affordable(again []*scenario.Scenario) (kept []*scenario.Scenario) {
	if c.Budget <= 0 || len(again) == 0 {
		return again
	}
	took, total, longest := c.used(), time.Duration(0), time.Duration(0)
	for _, sc := range again {
		each := c.timeAgain(sc)
		// The planes share the scenarios, but one plane learns a scenario alone.
		share := max((total+each)/time.Duration(max(c.fleet.Len(), 1)), longest, each)
		if float64(took+share) < againShare*float64(c.forFaults()) {
			kept, total, longest = append(kept, sc), total+each, max(longest, each)
		}
	}
	if len(kept) == 0 && len(again) == len(c.comparable()) {
		kept = again[:1]
	}
	for _, sc := range again {
		if !slices.Contains(kept, sc) {
			c.notLearntAgain(sc)
		}
	}
	return kept
}

// notLearntAgain leaves out a scenario that would have to be learnt again, because what was
// learnt about it is wrong.
func (c *check) notLearntAgain(sc *scenario.Scenario) {
	c.forget(sc.Name)
	c.mu.Lock()
	delete(c.lessons, sc.Name)
	c.mu.Unlock()
	c.notLearnt(sc, whyAgain)
}

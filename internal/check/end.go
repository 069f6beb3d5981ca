package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
)

var (
	// errBudget ends a check whose budget was used up. errEnough ends a check that was to
	// stop at the first finding.
	errBudget = errors.New("the budget was used up")
	errEnough = errors.New("one finding was enough")
)

// beforeScenario follows the reason why a check ended.
const beforeScenario = " before a scenario was run without a fault"

// ErrInterrupted reports that a check was interrupted before it had any result.
var ErrInterrupted = errors.New("interrupted before there was a result; run the command again")

// ended returns the result of a check that has ended, early or not. If the check ended early, the
// result contains everything that was learnt until then.
func (c *check) ended(ctx context.Context, err error) (*Result, error) {
	var idle *IdleError
	why, known := early(ctx, err)
	switch {
	case err == nil:
	case errors.As(err, &idle), errors.Is(err, errWorkloads):
		return nil, err
	case len(c.lessons) > 0 || c.Known != nil || c.hasShown() || c.hasTried():
		c.cutShort(why, err)
	case known:
		return nil, c.tooEarly(why, err)
	default:
		return nil, err
	}
	if err := c.Journal.Err(); err != nil {
		c.note(fmt.Sprintf("this check cannot be resumed: %v", err))
	}
	return c.report(c.suspicions.found), nil
}

// early returns why a check ended early. known is false if the reason is an unexpected error.
func early(ctx context.Context, err error) (why string, known bool) {
	var exhausted *fleet.ExhaustedError
	switch {
	case ctx.Err() != nil:
		return "the check was interrupted", true
	case errors.Is(err, errBudget), errors.Is(err, errEnough):
		return err.Error(), true
	case errors.As(err, &exhausted):
		return err.Error(), true
	}
	return fmt.Sprint(err), false
}

// tooEarly returns the error of a check that ended before anything was known.
func (c *check) tooEarly(why string, err error) error {
	switch {
	case len(c.result.Report.NotLearnt) > 0:
		return c.nothingLearnt()
	case errors.Is(err, errBudget):
		return errors.New(why + beforeScenario + "; increase --budget, or omit it")
	}
	var exhausted *fleet.ExhaustedError
	if errors.As(err, &exhausted) {
		return err
	}
	return ErrInterrupted
}

// cutShort records which scenarios and faults a check did not run.
func (c *check) cutShort(why string, err error) {
	if errors.Is(err, errEnough) {
		return
	}
	c.suspicions.end(why)
	for _, sc := range c.Scenarios {
		if c.lessons[sc.Name] == nil && !c.isLeftOut(sc.Name) {
			c.notLearnt(sc, why)
		}
	}
	if c.Upgrade != nil {
		if c.result.Report.Stopped == "" {
			c.result.Report.Stopped = why + " before all scenarios were upgraded"
		}
		return
	}
	if len(c.lessons) == 0 && c.Known == nil {
		c.result.Report.Stopped = why + beforeScenario
		return
	}
	if !c.planned {
		c.plan()
	}
	left := 0
	for i, p := range c.queue {
		if !c.done[i] {
			c.tally.leftOut(p, why)
			left++
		}
	}
	if errors.Is(err, errBudget) {
		return
	}
	c.result.Report.Stopped = fmt.Sprintf("%s after %d of %d faults", stopped(why), len(c.result.Plan)-left, len(c.result.Plan))
}

func stopped(why string) string {
	if why == "the check was interrupted" {
		return "interrupted"
	}
	return "stopped, because " + why + ","
}

func (c *check) isLeftOut(scenario string) bool {
	for _, s := range c.result.Report.NotLearnt {
		if s.Scenario == scenario {
			return true
		}
	}
	return false
}

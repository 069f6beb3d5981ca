package check

import (
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
)

// mostSecondKills is the number of second kills for each scenario.
const mostSecondKills = 5

// recovered notes which second kills the recovery from a fault has shown to be worth a run.
func (s *suspicions) recovered(p plan.Planned, kills []fault.SecondKill) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secondKills == nil {
		s.secondKills = map[string][]fault.SecondKill{}
	}
	s.secondKills[p.Scenario] = append(s.secondKills[p.Scenario], kills...)
}

// secondKills plans the second kills, once all recoveries are known. A replay, and a check of certain
// kinds of faults, may not want them. A saved finding may already have been tried again.
func (c *check) secondKills() []plan.Planned {
	if c.Only || len(c.Faults) > 0 && !slices.Contains(c.Faults, fault.KillAgain) {
		return nil
	}
	c.suspicions.mu.Lock()
	planned := plan.Select(c.suspicions.secondKills, mostSecondKills)
	c.suspicions.mu.Unlock()
	return slices.DeleteFunc(planned, func(p plan.Planned) bool {
		return c.wasRun(p) || slices.ContainsFunc(c.queue, func(q plan.Planned) bool { return same(p, q) })
	})
}

// enqueue adds faults that became known while the queue was run.
func (c *check) enqueue(more []plan.Planned) {
	c.queue = append(c.queue, more...)
	c.done = append(c.done, make([]bool, len(more))...)
	c.result.Plan = append(c.result.Plan, more...)
	for _, p := range more {
		c.tally.planned(p)
	}
}

package check

import (
	"fmt"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/journal"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// recordOf returns the record of a run for the journal.
func recordOf(p plan.Planned, out *fleet.Outcome) journal.Ran {
	return journal.Ran{
		Scenario: p.Scenario, Fault: p.Fault, Findings: serious(out.Findings), NotApplied: out.NotApplied, Inconclusive: out.Inconclusive,
		Pruned: out.Pruned, Took: out.Took, Used: out.Used, SecondKills: out.SecondKills,
	}
}

// resume takes over the results that an earlier check has recorded. It returns the faults of the
// queue that remain to be run.
func (c *check) resume(queue []plan.Planned) []plan.Planned {
	if c.Known == nil {
		return queue
	}
	// The journal records no findings of a run, only their number.
	for _, r := range c.Known.Ran {
		p := plan.Planned{Scenario: r.Scenario, Fault: r.Fault}
		if !slices.ContainsFunc(queue, func(q plan.Planned) bool { return same(p, q) }) { // a second kill
			c.result.Plan = append(c.result.Plan, p)
			c.tally.planned(p)
		}
		c.tally.ran(p, &fleet.Outcome{
			Findings: make([]judge.Finding, r.Findings), NotApplied: r.NotApplied, Inconclusive: r.Inconclusive, Pruned: r.Pruned, Took: r.Took,
		})
		c.needed(r.Used)
		c.suspicions.recovered(p, r.SecondKills)
	}
	for _, d := range c.Known.Doubtful {
		if p := (plan.Planned{Scenario: d.Scenario, Fault: d.Fault}); c.wasRun(p) {
			c.tally.doubtful(p, d.Finding, d.Why)
		}
	}
	c.suspicions.resume(c.Known.Found)
	left := slices.DeleteFunc(slices.Clone(queue), c.wasRun)
	c.note(fmt.Sprintf("resumed: the results include %s of an earlier check", noun.Count(len(c.Known.Ran), "run")))
	return left
}

// wasRun reports whether an earlier check has run a fault.
func (c *check) wasRun(p plan.Planned) bool {
	return c.Known != nil && slices.ContainsFunc(c.Known.Ran, func(r journal.Ran) bool {
		return same(p, plan.Planned{Scenario: r.Scenario, Fault: r.Fault})
	})
}

func same(a, b plan.Planned) bool { return a.Scenario == b.Scenario && fault.Same(a.Fault, b.Fault) }

// resume takes over confirmed findings, so that similar ones are not confirmed again.
func (s *suspicions) resume(found []judge.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alike == nil {
		s.alike = map[string]*alike{}
	}
	for _, f := range found {
		if s.alike[likeness(f)] == nil {
			s.alike[likeness(f)] = &alike{confirmed: true, at: len(s.found)}
			s.found = append(s.found, f)
		}
		if f.Verdict == judge.RecoveredLate {
			until := f
			until.Verdict = judge.DivergedUntilRestart
			s.alike[likeness(until)] = s.alike[likeness(f)]
		}
	}
}

package check

import (
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
)

// queueOf merges the plans of all scenarios into one queue. Faults with a finding in the
// previous check come first, provided that their scenario has a reference. learnt reports
// whether a scenario has a reference, and fits whether the budget suffices for the plan. whole is the number of faults of all shards, and others the
// number of those that other shards run.
func queueOf(o *Options, plans []plan.Plan, learnt func(scenario string) bool, fits func([]plan.Planned) bool) (queue []plan.Planned, whole, others int) {
	all := slices.Clone(o.Handed)
	if o.Handed == nil {
		all = plan.Order(plans, o.Seed)
	}
	if len(o.Faults) > 0 {
		all = slices.DeleteFunc(all, func(p plan.Planned) bool { return !slices.Contains(o.Faults, p.Fault.Kind) })
	}
	all = slices.DeleteFunc(all, func(p plan.Planned) bool { return o.Opinions.Meddles(p.Fault) })
	queue = slices.DeleteFunc(first(o.First, all, learnt), func(p plan.Planned) bool { return o.Opinions.Meddles(p.Fault) })
	whole = len(all)
	if o.Shards > 1 {
		part := plan.Shard(all, o.Shard, o.Shards)
		others = len(all) - len(part)
		all = part
	}
	if o.Only {
		return queue, whole, others
	}
	if fits(all) {
		all = plan.SlowEarly(all)
	}
	for _, p := range all {
		if !slices.ContainsFunc(queue, func(q plan.Planned) bool { return q.Scenario == p.Scenario && fault.Same(q.Fault, p.Fault) }) {
			queue = append(queue, p)
		}
	}
	return queue, whole, others
}

// withoutUnlearnt leaves out the faults of scenarios that this process has not learnt, although the
// process that made the plan has.
func (c *check) withoutUnlearnt(queue []plan.Planned, learnt func(scenario string) bool) (kept []plan.Planned) {
	for _, p := range queue {
		if learnt(p.Scenario) {
			kept = append(kept, p)
			continue
		}
		c.tally.planned(p)
		c.tally.leftOut(p, "this shard could not run the scenario without a fault")
	}
	return kept
}

// first returns the faults to run before all others. If the plan also contains such a fault, first
// returns the entry of the plan.
func first(faults map[string][]fault.Fault, all []plan.Planned, learnt func(scenario string) bool) (queue []plan.Planned) {
	for name, faults := range faults {
		if !learnt(name) {
			continue
		}
		for _, f := range faults {
			if inUpgrade(f) {
				continue
			}
			p := plan.Planned{Scenario: name, Fault: f}
			if i := slices.IndexFunc(all, func(p plan.Planned) bool { return p.Scenario == name && fault.Same(p.Fault, f) }); i >= 0 {
				p = all[i]
			}
			queue = append(queue, p)
		}
	}
	return queue
}

// fits reports whether the budget will probably suffice for the faults of a queue.
func (c *check) fits(queue []plan.Planned) bool {
	if c.Budget <= 0 {
		return true
	}
	n := c.Workers
	if n == 0 {
		n = size(fleet.WorkFor(len(queue)), c.costOf(queue))
	}
	running, waiting := c.timeFor(queue)
	return (running+waiting)/time.Duration(n) < c.left()
}

// timeFor estimates the time that one lab would need for the faults of a queue: the time of their runs,
// and the time that slow faults add.
func (c *check) timeFor(queue []plan.Planned) (running, waiting time.Duration) {
	for _, p := range queue {
		if p.IsSlow() {
			waiting += time.Duration(p.Cost) * time.Second / 10
		}
		if l := c.lessons[p.Scenario]; l != nil {
			running += l.Took
		}
	}
	return running, waiting
}

// tailsOf returns, for each fault of the queue, whether its run observes the controller for longer.
// Among the kills at the same kind of request in the same step, only the first is followed by a
// longer observation, because observing for longer after each kill would halve the number of faults
// per minute.
func tailsOf(queue []plan.Planned) []bool {
	type class struct{ scenario, step, verb, resource string }
	seen, tails := map[class]bool{}, make([]bool, len(queue))
	for i, p := range queue {
		at := p.Fault.Point
		c := class{p.Scenario, at.Step, at.Verb, at.Resource}
		if p.Fault.Kind.Kills() && !seen[c] {
			seen[c], tails[i] = true, true
		}
	}
	return tails
}

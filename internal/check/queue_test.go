package check

import (
	"slices"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
)

// withOutage returns a check whose plan has two quick faults and an outage. A run without a fault takes
// 10 s, as long as an outage adds to a run.
func withOutage(o Options) (c *check, plans []plan.Plan) {
	c = newCheck(o)
	outage := at(fault.Outage, "")
	outage.Phase, outage.Cost = fault.Outage.Phase(), fault.Outage.Cost()
	l := &lab.Lesson{Took: 10 * time.Second, Cost: lab.Cost{Busy: 0.4}}
	l.Plan.Faults = []plan.Planned{at(fault.KillLost, "a"), at(fault.KillAfter, "a"), outage}
	c.lessons["life"] = &fleet.Lesson{Lesson: l}
	return c, []plan.Plan{l.Plan}
}

func TestSlowFaultsComeFirstOnlyIfTheBudgetSufficesForAll(t *testing.T) {
	for budget, want := range map[time.Duration]int{0: 0, time.Minute: 0, 30 * time.Second: 2} {
		c, plans := withOutage(Options{Workers: 1, Budget: budget})
		kinds := kindsIn(c.order(plans))
		if got := slices.Index(kinds, fault.Outage); len(kinds) != 3 || got != want {
			t.Errorf("with a budget of %s, the faults are %v, want the outage at index %d", budget, kinds, want)
		}
	}
}

func TestFaultsOfSavedFindingsComeBeforeSlowOnes(t *testing.T) {
	saved := at(fault.KillAfter, "a").Fault
	c, plans := withOutage(Options{First: map[string][]fault.Fault{"life": {saved}}})
	queue, _, _ := queueOf(&c.Options, plans, func(string) bool { return true }, c.fits)
	if got := kindsIn(queue); !slices.Equal(got, []fault.Kind{fault.KillAfter, fault.Outage, fault.KillLost}) {
		t.Errorf("the faults are %v", got)
	}
}

func TestLabThatWaitsForTheEndOfASlowFaultLeavesTheProcessorsToOthers(t *testing.T) {
	c, plans := withOutage(Options{})
	for i, want := range []float64{0.4, 0.4, 0.4, 0.3} { // with the outage, 30 of 40 s are not spent waiting
		if got := c.costOf(plans[0].Faults[:i]).Busy; got < want-0.001 || got > want+0.001 {
			t.Errorf("with %d faults, a lab keeps %.2f processors busy, want %.2f", i, got, want)
		}
	}
}

func TestLabThatWatchesARestLeavesTheProcessorsToOthers(t *testing.T) {
	c, _ := withOutage(Options{Horizon: 30 * time.Second})
	if got := c.costOfWatching().Busy; got < 0.099 || got > 0.101 {
		t.Errorf("a lab keeps %.2f processors busy, want 0.10: of 40 s, it runs the scenario for 10 s", got)
	}
}

func TestShardsOfAHandedPlanRunEachFaultOnceEvenIfTheyLearnOtherPlans(t *testing.T) {
	var handed []plan.Planned
	for _, object := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		handed = append(handed, at(fault.KillLost, object), at(fault.Conflict, object))
	}
	ran := map[string]int{}
	for shard := 1; shard <= 3; shard++ {
		c, plans := withOutage(Options{Handed: handed, Shard: shard, Shards: 3, Workers: 1})
		plans[0].Faults = plans[0].Faults[:shard] // each shard learns another plan
		c.lessons["life"].Reference = &judge.Reference{}
		queue := c.order(plans)
		for _, p := range queue {
			ran[p.ID]++
		}
		if r := c.result.Report; r.WholePlan != len(handed) || r.LeftToShards != len(handed)-len(queue) {
			t.Errorf("shard %d: %d faults in the whole plan, %d of them in other shards", shard, r.WholePlan, r.LeftToShards)
		}
	}
	for _, p := range handed {
		if ran[p.ID] != 1 {
			t.Errorf("%s is in %d shards", p, ran[p.ID])
		}
		delete(ran, p.ID)
	}
	if len(ran) > 0 {
		t.Errorf("faults that are not in the plan: %v", ran)
	}
}

func TestFaultsOfAScenarioThatTheShardCannotRunAreLeftOut(t *testing.T) {
	c, _ := withOutage(Options{Handed: []plan.Planned{at(fault.KillLost, "a"), at(fault.Conflict, "a")}})
	if queue := c.order(nil); len(queue) != 0 {
		t.Errorf("the shard would run %v", queue)
	}
	if left := c.result.Report.LeftOut; len(left) != 2 || left[0].Scenario != "life" || left[0].Why == "" {
		t.Errorf("left out are %+v", left)
	}
}

package check

import (
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func TestLearningLeavesHalfOfTheBudgetToTheFaults(t *testing.T) {
	t.Parallel()
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;")
	o := Options{Program: program, Dir: t.TempDir(), Workers: 1, Budget: time.Hour, Scenarios: scenarios("life", "again", "change")}
	c := newCheck(o)
	c.began = c.began.Add(-45 * time.Minute) // most of the budget is used up
	err := c.work(t.Context())
	c.fleet.Stop()
	result, err := c.ended(t.Context(), err)
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if len(r.Tried) != 1 || r.Tried[0].Clean != 1 {
		t.Errorf("no fault was injected: %+v", r.Tried)
	}
	if len(r.NotLearnt) != 2 || r.NotLearnt[0].Why != whyEnough || r.NotLearnt[1].Scenario != "change" {
		t.Errorf("left out are %+v", r.NotLearnt)
	}
}

func TestBudgetDoesNotHideWhyNoScenarioCouldBeRun(t *testing.T) {
	c := newCheck(Options{Budget: time.Minute, Scenarios: scenarios("bad", "late")})
	c.notLearnt(c.Scenarios[0], "step create: no such kind")
	_, err := c.ended(t.Context(), errBudget)
	if err == nil || !strings.Contains(err.Error(), "step create: no such kind") {
		t.Errorf("the reason is not in: %v", err)
	}
}

func TestWatchingLeavesThreeQuartersOfTheBudget(t *testing.T) {
	for took, want := range map[time.Duration]bool{14 * time.Second: false, 15 * time.Second: true} {
		if got := newCheck(Options{Budget: time.Minute}).watchedEnough(took); got != want {
			t.Errorf("after %s of a minute: %v", took, got)
		}
		if newCheck(Options{}).watchedEnough(took) {
			t.Errorf("without a budget, watching ends after %s", took)
		}
	}
}

func TestAScenarioThatTakesTooLongToLearnIsLeftOut(t *testing.T) {
	c := newCheck(Options{Budget: time.Hour})
	short, long := scenarios("short")[0], scenarios("long")[0]
	long.Steps = make([]scenario.Step, 20)
	if c.learntEnough(long) {
		t.Error("the first scenario is not learnt")
	}
	c.lessons["short"] = &fleet.Lesson{}
	c.pace.add(6*time.Minute, 3)
	if c.learntEnough(short) || !c.learntEnough(long) {
		t.Errorf("short %v, long %v", c.learntEnough(short), c.learntEnough(long))
	}
}

func TestAScenarioThatCannotBeLearntAgainInTimeIsLeftOut(t *testing.T) {
	c := newCheck(Options{Budget: time.Hour, Scenarios: scenarios("plateau", "long", "good")})
	for _, sc := range c.Scenarios {
		c.lessons[sc.Name] = &fleet.Lesson{Lesson: &lab.Lesson{Scenario: sc, Reference: &judge.Reference{}}}
	}
	plateau, long := c.Scenarios[0], c.Scenarios[1]
	long.Steps = make([]scenario.Step, 100)
	c.pace.add(time.Minute, 1)
	again := c.affordable([]*scenario.Scenario{plateau, long})
	if len(again) != 1 || again[0] != plateau {
		t.Errorf("learnt again: %v", again)
	}
	if left := c.result.Report.NotLearnt; len(left) != 1 || left[0].Scenario != "long" || c.lessons["long"] != nil || c.lessons["plateau"] == nil {
		t.Errorf("left out are %+v", left)
	}
	c.began = c.began.Add(-50 * time.Minute)
	if again := c.affordable([]*scenario.Scenario{plateau, c.Scenarios[2]}); len(again) != 1 {
		t.Errorf("no scenario would remain: %v", again)
	}
}

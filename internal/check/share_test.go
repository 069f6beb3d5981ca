package check

import (
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
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

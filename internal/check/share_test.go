package check

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// finish runs a check whose beginning has been moved to the past, and returns its report.
func finish(t *testing.T, c *check) *report.Report {
	t.Helper()
	err := c.work(t.Context())
	c.fleet.Stop()
	result, err := c.ended(t.Context(), err)
	if err != nil {
		t.Fatal(err)
	}
	return result.Report
}

func TestLearningLeavesHalfOfTheBudgetToTheFaults(t *testing.T) {
	t.Parallel()
	program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) echo '{\"knocked\":{}}' ;;")
	o := Options{Program: program, Dir: t.TempDir(), Workers: 1, Budget: time.Hour, Scenarios: scenarios("life", "again", "change")}
	c := newCheck(o)
	c.began = c.began.Add(-35 * time.Minute) // more than half of the budget is used up
	r := finish(t, c)
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

func TestQuietTimesThatWereAddedCountWhenAScenarioIsLearntAgain(t *testing.T) {
	c := newCheck(Options{Budget: time.Hour, Scenarios: scenarios("plateau", "good")})
	for _, sc := range c.Scenarios {
		sc.Steps = make([]scenario.Step, 2)
		c.lessons[sc.Name] = &fleet.Lesson{Lesson: &lab.Lesson{Scenario: sc, Reference: &judge.Reference{}, Runs: 10}}
	}
	c.pace.add(time.Minute, 2)
	for added, want := range map[time.Duration]bool{time.Minute: true, 10 * time.Minute: false} {
		again, _ := amend(c.Scenarios[0], nil, nil, scenario.Duration(time.Second))
		again.Steps[1].Quiet = scenario.Duration(added)
		c.lessons["plateau"] = &fleet.Lesson{Lesson: &lab.Lesson{Scenario: c.Scenarios[0], Reference: &judge.Reference{}, Runs: 10}}
		if kept := c.affordable([]*scenario.Scenario{again}); (len(kept) == 1) != want {
			t.Errorf("with %s more in each of 10 runs, %d scenarios are learnt again", added, len(kept))
		}
	}
}

func TestWatchingSharesOnlyWhatIsLeftOfTheBudget(t *testing.T) {
	now := time.Now()
	c := newCheck(Options{Budget: time.Hour})
	c.began = now.Add(-40 * time.Minute)
	left := c.left()
	if left > 20*time.Minute || left < 19*time.Minute {
		t.Errorf("after 40 minutes, %s of an hour are left", left)
	}
	if s := shareOf(20*time.Minute, now); s.over(now.Add(4*time.Minute)) || !s.over(now.Add(6*time.Minute)) {
		t.Errorf("watching ends at %s after %s", s.until, now)
	}
	if shareOf(newCheck(Options{}).left(), now).over(now.Add(24 * time.Hour)) {
		t.Error("watching ends without a budget")
	}
}

func TestNoRestIsWatchedOnceTheBudgetIsAlmostUsedUp(t *testing.T) {
	program, requests := watchingLab(t, lab.Watched{Step: "create"})
	c := newCheck(Options{Program: program, Dir: t.TempDir(), Workers: 1, Budget: time.Hour, Horizon: time.Minute, Scenarios: scenarios("life")})
	c.began = c.began.Add(-time.Hour + 10*time.Second)
	if err := c.work(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.fleet.Stop()
	if n := asked(t, requests, `"watch"`); n != 0 {
		t.Errorf("%d rests were watched", n)
	}
}

func TestLearningEndsEarlyOnlyIfTheFaultsNeedTheBudget(t *testing.T) {
	for took, want := range map[time.Duration]bool{time.Second: false, time.Hour: true} {
		c := newCheck(Options{Program: shellLab(t, ""), Dir: t.TempDir(), Workers: 1, Budget: time.Hour, Scenarios: scenarios("life")})
		c.began = c.began.Add(-25 * time.Minute)
		l := &lab.Lesson{Scenario: c.Scenarios[0], Took: took}
		l.Plan.Faults = make([]plan.Planned, 2)
		c.lessons["life"] = &fleet.Lesson{Lesson: l}
		if err := c.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.learntEnough(c.Scenarios[0]); got != want {
			t.Errorf("if a fault takes %s, learning ends: %t, want %t", took, got, want)
		}
		c.fleet.Stop()
	}
}

func TestPlanesThatStartSlowlyDoNotUseUpTheBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		each, left time.Duration
		want       int
	}{
		{24 * time.Second, 80 * time.Second, 0},
		{12 * time.Second, 3 * time.Minute, 3},
		{500 * time.Millisecond, time.Minute, 30},
		{time.Second, -time.Second, 0},
	} {
		if got := planesWithin(c.each, c.left); got != c.want {
			t.Errorf("%s each, %s left: %d planes, want %d", c.each, c.left, got, c.want)
		}
	}
}

func TestPathsHaveAShareOfTheirOwn(t *testing.T) {
	c := newCheck(Options{Budget: time.Hour})
	c.lessons["life"] = &fleet.Lesson{Lesson: &lab.Lesson{}}
	c.began = c.began.Add(-5 * time.Minute)
	sc := scenarios("again")[0]
	c.pace.add(21*time.Minute, len(sc.Steps))
	if c.learntEnough(sc) {
		t.Error("learning may not take half of the budget")
	}
	if c.Paths = scenarios("two"); !c.learntEnough(sc) {
		t.Error("learning takes the time for paths")
	}
}

func TestLabsForWhichTheMachineHasNoRoomEndUnlessTheirNumberWasChosen(t *testing.T) {
	busy := lab.Cost{Busy: float64(runtime.GOMAXPROCS(0))} // one lab keeps all processors busy
	most := size(1, busy) + 2
	for _, of := range []struct{ workers, want int }{{0, most - 2}, {most, most}} {
		c := newCheck(Options{Program: shellLab(t, ""), Dir: t.TempDir(), Workers: of.workers})
		t.Cleanup(c.fleet.Stop)
		if err := c.fleet.Grow(t.Context(), most); err != nil {
			t.Fatal(err)
		}
		c.reduce(busy)
		if got := c.fleet.Len(); got != of.want {
			t.Errorf("with --workers=%d, %d of %d labs are left, want %d", of.workers, got, most, of.want)
		}
	}
}

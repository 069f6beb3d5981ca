package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/journal"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
)

// again returns a second kill after the write that at returns.
func again(object string) fault.SecondKill {
	return fault.SecondKill{State: object, Fault: fault.Fault{
		Kind: fault.KillAgain, Point: at(fault.KillLost, "a").Fault.Point, Again: fault.Point{Step: "create", Verb: "delete", Resource: "configmaps", Object: object, Occurrence: 1},
	}}
}

// recovering returns a lab whose runs with a kill show a recovery that is worth a second kill.
func recovering(t *testing.T) []string {
	t.Helper()
	kills, err := json.Marshal([]fault.SecondKill{again("x")})
	if err != nil {
		t.Fatal(err)
	}
	return shellLab(t, learns(t, at(fault.KillLost, "a"), at(fault.Conflict, "b"))+`
*'"kill-again"'*) echo '{"knocked":{"pruned":true}}' ;;
*'"kill-lost"'*) echo '{"knocked":{"secondKills":`+string(kills)+`}}' ;;
*'"knock"'*) echo '{"knocked":{}}' ;;`)
}

// triedIn returns the number of runs by kind.
func triedIn(t *testing.T, program []string, o Options) map[fault.Kind]int {
	t.Helper()
	result, err := runIn(t.Context(), t, program, o)
	if err != nil {
		t.Fatal(err)
	}
	tried := map[fault.Kind]int{}
	for _, k := range result.Report.Tried {
		if k.Planned != k.Runs {
			t.Errorf("%s: %d of %d planned faults were run", k.Kind, k.Runs, k.Planned)
		}
		tried[k.Kind] = k.Runs
	}
	return tried
}

func TestAKillDuringARecoveryIsPlannedOnceTheRecoveryIsKnown(t *testing.T) {
	program := recovering(t)
	for name, tt := range map[string]struct {
		o    Options
		want int
	}{
		"all kinds":           {Options{}, 1},
		"two labs":            {Options{Workers: 2}, 1},
		"both kinds of kills": {Options{Faults: []fault.Kind{fault.KillLost, fault.KillAgain}}, 1},
		"only the first kill": {Options{Faults: []fault.Kind{fault.KillLost}}, 0},
	} {
		if tried := triedIn(t, program, tt.o); tried[fault.KillAgain] != tt.want || tried[fault.KillLost] != 1 {
			t.Errorf("%s: %v", name, tried)
		}
	}
}

func TestAResumedCheckKnowsTheRecoveriesThatItDoesNotRepeat(t *testing.T) {
	ran := []journal.Ran{{Scenario: "life", Fault: at(fault.KillLost, "a").Fault, SecondKills: []fault.SecondKill{again("x"), again("y")}}}
	program := recovering(t)
	if tried := triedIn(t, program, Options{Known: &journal.Known{Ran: ran}}); tried[fault.KillAgain] != 2 {
		t.Errorf("after the first kill, %v", tried)
	}
	ran = append(ran, journal.Ran{Scenario: "life", Fault: again("y").Fault})
	if tried := triedIn(t, program, Options{Known: &journal.Known{Ran: ran}}); tried[fault.KillAgain] != 2 {
		t.Errorf("after one second kill, %v, want each once", tried)
	}
}

func TestASecondKillOfASavedFindingIsNotRunTwice(t *testing.T) {
	for name, tt := range map[string]struct {
		o     Options
		queue []plan.Planned
		want  int
	}{
		"nothing saved":   {Options{}, nil, 1},
		"a saved finding": {Options{}, []plan.Planned{{Scenario: "life", Fault: again("x").Fault}}, 0},
		"a replay":        {Options{Only: true}, nil, 0},
	} {
		c := newCheck(tt.o)
		c.queue = tt.queue
		c.suspicions.recovered(at(fault.KillLost, "a"), []fault.SecondKill{again("x")})
		if more := c.secondKills(); len(more) != tt.want {
			t.Errorf("%s: planned %v", name, more)
		}
	}
}

func TestOnlyFewSecondKillsArePlannedForAScenario(t *testing.T) {
	c := newCheck(Options{})
	for n := range 3 * mostSecondKills {
		c.suspicions.recovered(at(fault.KillLost, "a"), []fault.SecondKill{again(fmt.Sprint(n))})
	}
	first := c.secondKills()
	if len(first) != mostSecondKills {
		t.Fatalf("%d are planned, want %d", len(first), mostSecondKills)
	}
	c.enqueue(first)
	if more := c.secondKills(); len(more) != 0 || len(c.queue) != mostSecondKills || len(c.done) != mostSecondKills || slices.Contains(c.done, true) {
		t.Errorf("planned again: %v", more)
	}
}

func TestAnInterruptedCheckCountsTheSecondKillsThatItHasResumed(t *testing.T) {
	second := plan.Planned{Scenario: at(fault.KillLost, "a").Scenario, Fault: again("x").Fault}
	queue := []plan.Planned{at(fault.KillLost, "a"), at(fault.Conflict, "b")}
	var ran []journal.Ran
	for _, p := range []plan.Planned{queue[0], second} {
		ran = append(ran, journal.Ran{Scenario: p.Scenario, Fault: p.Fault})
	}
	c := newCheck(Options{Known: &journal.Known{Ran: ran}})
	c.result.Plan, c.planned = queue, true
	c.queue = c.resume(queue)
	c.done = make([]bool, len(c.queue))
	c.cutShort("the check was interrupted", errors.New("a signal"))
	if got := c.result.Report.Stopped; got != "interrupted after 2 of 3 faults" {
		t.Errorf("%q", got)
	}
}

package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func phase(value string) state.Object {
	w := widget(1, nil)
	w["status"] = map[string]any{"phase": value}
	return w
}

func configMap(value string) state.Object {
	return state.Object{"kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": value}}
}

// working returns a run in which the controller announces its work, creates an object, and reports the
// end of its work. If killed, the controller is killed after the creation, and the recovery follows.
func working(recovery func(*story)) *story {
	s := newStory("s")
	s.step(apply("create"))
	s.commit(ref("widgets", "a"), widget(1, nil))
	s.writes("update", "widgets/status", "a", phase("Working"))
	s.writes("create", "deployments", "a", deployment(1))
	if recovery != nil {
		f := fault.Fault{Kind: fault.KillLost, Point: fault.Point{Step: "create", Verb: "create", Resource: "deployments.apps", Object: "default/a", Occurrence: 1}}
		s.run.Fault = &f
		s.add(trace.Entry{Fault: &trace.Fault{What: "applied"}})
		s.add(trace.Entry{Instance: "controller-1", Process: &trace.Process{What: "killed"}})
		recovery(s)
	}
	s.writes("create", "configmaps", "a", configMap("v"))
	s.writes("update", "widgets/status", "a", phase("Done"))
	s.rest()
	return s
}

// secondKills returns the second kills of a run, each as a human reader sees the second write.
func secondKills(t *testing.T, recovery func(*story)) (found []string) {
	t.Helper()
	in, mask := working(nil).input(), &state.Mask{}
	in.All = []*evidence.Run{in.Reference, working(nil).run}
	run := working(recovery).run
	for _, s := range SecondKills(in, run, mask, ShownBy(in, mask)) {
		if s.Fault.Kind != fault.KillAgain || s.Fault.Point != run.Fault.Point || s.Fault.Again.Change != "" || s.State == "" {
			t.Errorf("the second kill is %+v", s)
		}
		found = append(found, s.Fault.Again.String())
	}
	return found
}

func TestARecoveryThatOnlyGoesOnNeedsNoSecondKill(t *testing.T) {
	if got := secondKills(t, func(*story) {}); len(got) != 0 {
		t.Errorf("planned %v", got)
	}
}

func TestASecondKillIsPlannedWhereARecoveryLeadsToANewState(t *testing.T) {
	got := secondKills(t, func(s *story) {
		s.writes("update", "widgets/status", "a", phase(""))        // new: the Deployment exists, and nothing says so
		s.writes("delete", "deployments", "a", nil)                 // new: no phase, but not as at the beginning
		s.writes("update", "widgets/status", "a", phase("Working")) // known
		s.writes("create", "deployments", "a", deployment(1))       // known
	})
	expect(t, got, []string{
		"PUT widgets.example.com/status default/a in step create",
		"DELETE deployments.apps default/a in step create",
	})
}

func TestRequestsOfARecoveryAreCountedFromTheKill(t *testing.T) {
	got := secondKills(t, func(s *story) {
		s.repeats("update", "widgets/status", "a") // it changes nothing, but is counted
		s.writes("update", "widgets/status", "a", phase("Broken"))
	})
	if len(got) == 0 || got[0] != "the 2nd PUT widgets.example.com/status default/a in step create" {
		t.Errorf("planned %v", got)
	}
}

func TestTheProgressOfOtherControllersIsNoNewState(t *testing.T) {
	got := secondKills(t, func(s *story) {
		rolled := object("Deployment", "a", map[string]any{"replicas": 1}, map[string]any{"annotations": map[string]any{"deployment.kubernetes.io/revision": "1"}})
		rolled["status"] = map[string]any{"replicas": 1}
		s.commit(ref("deployments", "a"), rolled)
		s.commit(ref("pods", "a"), object("Pod", "a", nil, nil))
	})
	if len(got) != 0 {
		t.Errorf("planned %v", got)
	}
}

func TestFewSecondKillsArePlannedForOneRecovery(t *testing.T) {
	got := secondKills(t, func(s *story) {
		for _, value := range []string{"1", "2", "3", "4", "5"} {
			s.writes("update", "widgets/status", "a", phase(value))
		}
	})
	if len(got) != mostSecondKills {
		t.Errorf("planned %v", got)
	}
}

func TestOnlyTheRecoveryFromAKillIsFollowedByAnother(t *testing.T) {
	in, mask := working(nil).input(), &state.Mask{}
	shown := ShownBy(in, mask)
	recovery := func(s *story) { s.writes("update", "widgets/status", "a", phase("")) }
	for name, change := range map[string]func(*evidence.Run){
		"no fault":            func(r *evidence.Run) { r.Fault = nil },
		"another fault":       func(r *evidence.Run) { r.Fault.Kind = fault.LoseResponse },
		"a second kill":       func(r *evidence.Run) { r.Fault.Kind = fault.KillAgain },
		"nothing was applied": func(r *evidence.Run) { r.Entries = r.Entries[:1] },
	} {
		run := working(recovery).run
		change(run)
		if got := SecondKills(in, run, mask, shown); len(got) != 0 {
			t.Errorf("%s: planned %+v", name, got)
		}
	}
	if got := SecondKills(in, working(recovery).run, mask, nil); len(got) != 0 {
		t.Errorf("without the states of the runs without a fault, %+v is planned", got)
	}
}

func TestOfSecondKillsWithTheSameStateOneIsPlanned(t *testing.T) {
	second := func(object, again, reached string) fault.SecondKill {
		return fault.SecondKill{State: reached, Fault: fault.Fault{
			Kind: fault.KillAgain, Point: fault.Point{Step: "s", Verb: "create", Object: object}, Again: fault.Point{Step: "s", Verb: "update", Object: again},
		}}
	}
	all := []fault.SecondKill{second("a", "x", "1"), second("b", "x", "1"), second("b", "y", "2"), second("c", "y", "2"), second("c", "z", "3")}
	planned := Select(map[string][]fault.SecondKill{"life": all, "change": all[:1]}, 2)
	count := map[string]int{}
	for _, p := range planned {
		count[p.Scenario]++
		if p.ID != idOf(p.Scenario, p.Fault) || p.Phase != fault.PhaseOthers || p.Cost <= 0 {
			t.Errorf("planned %+v", p)
		}
	}
	if count["life"] != 2 || count["change"] != 1 {
		t.Errorf("planned %v, want at most two for each scenario", planned)
	}
	slices.Reverse(all)
	if diff := cmp.Diff(planned, Select(map[string][]fault.SecondKill{"life": all, "change": {all[len(all)-1]}}, 2)); diff != "" {
		t.Errorf("in another order (-first +second):\n%s", diff)
	}
	states := map[string]bool{}
	for _, p := range Select(map[string][]fault.SecondKill{"life": all}, 10) {
		for _, s := range all {
			if s.Fault == p.Fault {
				states[s.State] = true
			}
		}
	}
	if len(states) != 3 || len(Select(map[string][]fault.SecondKill{"life": all}, 10)) != 3 {
		t.Errorf("without a limit, the states %v are planned", states)
	}
}

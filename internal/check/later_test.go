package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
)

// untilRestart answers a run with a finding, or with another verdict if the run waits for longer.
func untilRestart(object, later string) string {
	finding := func(verdict string, recovered int) string {
		return fmt.Sprintf(`{"knocked":{"findings":[{"id":"1","verdict":%q,"scenario":"life","step":"create","sentence":"it is gone","differences":[{"object":%q}],"recoveredAfterSeconds":%d}]}}`, verdict, object, recovered)
	}
	return fmt.Sprintf(`case "$line" in *'"later"'*) echo '%s' ;; *) echo '%s' ;; esac ;;`, finding(later, 80), finding("DIVERGED UNTIL RESTART", 5))
}

func TestFindingIsOnlyARemarkIfTheControllerRecoversInALongerRun(t *testing.T) {
	for later, want := range map[string]int{"RECOVERED LATE": 0, "DIVERGED UNTIL RESTART": 1} {
		program := shellLab(t, learns(t, at(fault.KillLost, "a"), at(fault.Conflict, "b"))+"\n*'\"knock\"'*) "+untilRestart("ConfigMap default/a", later))
		result, err := runIn(t.Context(), t, program, Options{Horizon: time.Second, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		r := result.Report
		all := slices.Concat(r.Findings, r.Remarks)
		if len(r.Findings) != want || len(all) != 1 || all[0].Verdict != judge.Verdict(later) {
			t.Fatalf("a longer run shows %s; the report has %+v and the remarks %+v", later, r.Findings, r.Remarks)
		}
		found := 0
		for _, k := range r.Tried {
			found += k.Found
		}
		if found != 2*want {
			t.Errorf("%s: %d runs count as found: %+v", later, found, r.Tried)
		}
		if f := all[0]; f.Reproduced != 3 || f.AlsoBy != 1 || f.Seed != 5 || f.RecoveredAfterSeconds != 80 {
			t.Errorf("%s: %+v", later, f)
		}
	}
}

func TestALongerRunThatDoesNotShowTheSymptomIsRepeated(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	finding := func(verdict, object string) string {
		return fmt.Sprintf(`{"knocked":{"findings":[{"id":"1","verdict":%q,"scenario":"life","step":"create","sentence":"it is gone","differences":[{"object":"ConfigMap default/a"}%s]}]}}`, verdict, object)
	}
	for name, tc := range map[string]struct {
		late string // the second longer run
		want int    // findings
	}{
		"it recovers late":                         {finding("RECOVERED LATE", ""), 0},
		"it recovers late, with one more object":   {finding("RECOVERED LATE", `,{"object":"Secret default/b"}`), 0},
		"it stays wrong":                           {finding("DIVERGED UNTIL RESTART", ""), 1},
		"the symptom does not show in any":         {`{"knocked":{}}`, 1},
		"another object recovers late in all runs": {strings.ReplaceAll(finding("RECOVERED LATE", ""), "default/a", "default/c"), 1},
	} {
		_ = os.Remove(seen)
		program := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"watch\"'*) echo '{\"watched\":{}}' ;;"+
			"\n*'\"later\"'*) if [ -e "+seen+" ]; then echo '"+tc.late+"'; else : > "+seen+"; echo '{\"knocked\":{}}'; fi ;;"+
			"\n*'\"knock\"'*) echo '"+finding("DIVERGED UNTIL RESTART", "")+"' ;;")
		result, err := runIn(t.Context(), t, program, Options{Horizon: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if r := result.Report; len(r.Findings) != tc.want || len(r.Findings)+len(r.Remarks) != 1 {
			t.Errorf("%s: the report has %+v and the remarks %+v", name, r.Findings, r.Remarks)
		}
	}
}

func TestALongerRunIsMadeOncePerKindOfObject(t *testing.T) {
	program := shellLab(t, learns(t, at(fault.KillLost, "a"), at(fault.Conflict, "b"), at(fault.Restart, "c"))+
		"\n*'\"kill-lost\"'*) "+untilRestart("ConfigMap default/a", "DIVERGED UNTIL RESTART")+
		"\n*'\"conflict\"'*) "+untilRestart("ConfigMap default/b", "DIVERGED UNTIL RESTART")+
		"\n*'\"knock\"'*) "+untilRestart("Secret default/c", "DIVERGED UNTIL RESTART"))
	result, err := runIn(t.Context(), t, program, Options{Horizon: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	// Each finding takes two more runs with the fault and two without.
	if r := result.Report; len(r.Findings) != 3 || r.Confirmations != 3*4+2 {
		t.Errorf("%d findings took %d runs to confirm; want 3 and 14", len(r.Findings), r.Confirmations)
	}
}

func TestALongerRunComesFirstWhereTheControllerProbablyRecovers(t *testing.T) {
	for _, tc := range []struct {
		kind                    fault.Kind
		later                   string
		findings, confirmations int
	}{
		// To confirm a finding takes four runs.
		{fault.Conflict, "RECOVERED LATE", 0, 4 + 1 + 1 + 1},
		{fault.Conflict, "DIVERGED UNTIL RESTART", 3, 4 + 1 + 4 + 4},
		{fault.Forbid, "RECOVERED LATE", 0, 1 + 1 + 1},
		{fault.Forbid, "DIVERGED UNTIL RESTART", 3, 1 + 4 + 4 + 4},
	} {
		program := shellLab(t, learns(t, at(tc.kind, "a"), at(tc.kind, "b"), at(tc.kind, "c"))+
			"\n*'\"object\":\"a\"'*) "+untilRestart("ConfigMap default/a", tc.later)+
			"\n*'\"object\":\"b\"'*) "+untilRestart("ConfigMap default/b", tc.later)+
			"\n*'\"knock\"'*) "+untilRestart("ConfigMap default/c", tc.later))
		result, err := runIn(t.Context(), t, program, Options{Horizon: time.Second, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r := result.Report; len(r.Findings) != tc.findings || len(r.Findings)+len(r.Remarks) != 3 || r.Confirmations != tc.confirmations {
			t.Errorf("%s, %s: %d findings and %d remarks took %d runs to confirm; want %d and %d", tc.kind, tc.later, len(r.Findings), len(r.Remarks), r.Confirmations, tc.findings, tc.confirmations)
		}
	}
}

func TestASuiteThatGoesOnInALongerRunMakesTheFindingARemark(t *testing.T) {
	lesson := &lab.Lesson{Plan: plan.Plan{Faults: []plan.Planned{at(fault.KillLost, "a")}}, Reference: &judge.Reference{Suite: &judge.SuiteReference{}}}
	finding := `{"knocked":{"findings":[{"id":"1","verdict":"DIVERGED UNTIL RESTART","scenario":"life","step":"create",` +
		`"sentence":"while the test suite waited, it is gone, until the controller is restarted after 4s"}]}}`
	program := shellLab(t, teaches(t, lesson)+"\n*'\"watch\"'*) echo '{\"watched\":{}}' ;;\n*'\"later\"'*) echo '{\"knocked\":{}}' ;;\n*'\"knock\"'*) echo '"+finding+"' ;;")
	result, err := runIn(t.Context(), t, program, Options{Horizon: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if len(r.Findings) != 0 || len(r.Remarks) != 1 || r.Remarks[0].Verdict != judge.RecoveredLate ||
		r.Remarks[0].Sentence != "while the test suite waited, it is gone, until the controller tries again on its own" {
		t.Errorf("the report has %+v and the remarks %+v", r.Findings, r.Remarks)
	}
}

func TestAFindingIsKeptIfTheLongerRunIsInterruptedOrTheBudgetLeavesNoTimeForIt(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "interrupted")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	go func() {
		for {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
			if _, err := os.Stat(flag); err == nil {
				cancel()
			}
		}
	}()
	never := "\n*'\"later\"'*) : > " + flag + "; read -r line ;;"
	interrupted := shellLab(t, learns(t, at(fault.KillLost, "a"))+never+"\n*'\"knock\"'*) "+untilRestart("ConfigMap default/a", ""))
	result, _ := runIn(ctx, t, interrupted, Options{Horizon: time.Second})
	if len(result.Report.Findings) != 1 {
		t.Errorf("after the interruption, the report has %+v", result.Report.Findings)
	}
	brief := shellLab(t, learns(t, at(fault.KillLost, "a"))+"\n*'\"knock\"'*) "+untilRestart("ConfigMap default/a", "RECOVERED LATE"))
	result, err := runIn(t.Context(), t, brief, Options{Horizon: time.Minute, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if found := result.Report.Findings; len(found) != 1 || found[0].Sentence != "it is gone"+noTime {
		t.Errorf("with a short budget, the report has %+v", found)
	}
}

func TestAfterARefusalNothingIsFoundWithoutTheTimeToWaitForAnotherAttempt(t *testing.T) {
	for budget, want := range map[time.Duration]int{0: 1, 2 * time.Minute: 1, 80 * time.Second: 0} { // 0 means that there is no budget
		program := shellLab(t, learns(t, at(fault.Forbid, "a"), at(fault.Revoke, "b"))+"\n*'\"knock\"'*) "+untilRestart("ConfigMap default/a", "DIVERGED UNTIL RESTART"))
		result, err := runIn(t.Context(), t, program, Options{Horizon: 15 * time.Second, Budget: budget, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		r := result.Report
		if len(r.Findings) != want || len(r.Inconclusive) != 1-want {
			t.Fatalf("with a budget of %s, the report has %+v, and as inconclusive %+v", budget, r.Findings, r.Inconclusive)
		}
		if ran := r.Tried[0].Runs + r.Tried[1].Runs; ran != 1+want { // the second one would be of no use
			t.Errorf("with a budget of %s, %d faults were tried", budget, ran)
		}
		const why = "diverged until restart was found, but there was no time to wait for a regular reconcile of the controller, which may also repair it; increase --budget"
		if want == 0 && (r.Inconclusive[0].Suspicion == nil || r.Inconclusive[0].Why != why) {
			t.Errorf("the inconclusive run is %+v", r.Inconclusive[0])
		}
	}
}

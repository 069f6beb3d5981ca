package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

func TestEveryRemedyNamesTheObjectAndTheFieldOfTheFinding(t *testing.T) {
	const object = "Database.example.com default/demo"
	of := func(v judge.Verdict, path, want, got string) judge.Finding {
		return judge.Finding{Verdict: v, Differences: []state.Difference{{Object: object, Path: path, Want: want, Got: got}}}
	}
	tests := []struct {
		finding judge.Finding
		want    string
	}{
		{of(judge.Diverged, "", "{}", ""), "Create " + object + " in every reconcile that finds it missing."},
		{of(judge.Diverged, "", "", "{}"), "Delete " + object + " in every reconcile that still finds it."},
		{of(judge.Diverged, "spec.size", "1", "2"), "In every reconcile, set spec.size of " + object + " to the wanted value."},
		{of(judge.Diverged, "spec.size", "", "2"), "Remove spec.size of " + object + " in every reconcile in which it should not exist."},
		{of(judge.Diverged, "status.phase", "1", "2"), "In every reconcile, compute status.phase of " + object + " from the cluster."},
		{of(judge.Diverged, "metadata.finalizers", `"x"`, ""), "Write only your own fields, so that metadata.finalizers of " + object + " keeps what others added."},
		{of(judge.DestructiveBlip, "(deletions)", "0", "1"), "Delete " + object + " only if a current read shows that it must go."},
		{of(judge.DestructiveBlip, "data.password", "1", "2"), "Generate data.password of " + object + " only if a read shows that it does not exist."},
		{of(judge.DestructiveBlip, "spec.replicas", "3", "0"), "Write spec.replicas of " + object + " once, with its final value."},
		{of(judge.DestructiveBlip, "(rollouts)", "1", "2"), "Make all changes of the template of " + object + " in one write."},
		{of(judge.SecretLeaked, judge.LogPath, "", `"x"`), "Do not log the value of " + object + "."},
		{of(judge.SecretLeaked, "status.message", "", `"x"`), "Leave the value out of status.message of " + object + "; refer to the Secret."},
		{of(judge.TakenOver, "metadata.ownerReferences", `"a"`, `"b"`), "Do not give " + object + " to another owner while its owner exists."},
		{of(judge.TakenOver, "", "", ""), "Leave " + object + " alone, unless its owner reference names your resource."},
		{of(judge.Leak, "", "", "{}"), "Delete " + object + " before you remove the finalizer, or set its owner."},
		{of(judge.NotRestored, "", "{}", ""), "Watch " + object + ", and restore it in every reconcile."},
		{of(judge.GaveUp, "", "{}", ""), "Repeat what " + object + " needs until it succeeds."},
		{judge.Finding{Verdict: judge.Crashed, Frame: "main.run (main.go:7)"}, "Check for missing and unexpected values in main.run (main.go:7)."},
		{judge.Finding{Verdict: judge.HotLoop, Request: "PUT pods default/a"}, "Send PUT pods default/a only if it changes something."},
		{judge.Finding{Verdict: judge.SplitBrain, Request: "PUT pods default/a"}, "Stop sending PUT pods default/a when the Lease is lost, or end the process."},
		{judge.Finding{Verdict: judge.RBACMissing, Missing: []judge.Permission{{Verb: "get", Resource: "pods"}}}, "Add get pods to the role."},
		{judge.Finding{Verdict: judge.MoreRequests, Request: "get pods"}, "Send get pods less often, or use --update-budget."},
		{judge.Finding{Verdict: judge.UnboundedLists, Request: "list pods"}, "Read pods from the cache of an informer."},
		{judge.RemarkUnused(unused())[0], "Remove delete nodes from the role, if no situation needs it."},
	}
	for _, test := range tests {
		if got := remedy(test.finding); got != test.want {
			t.Errorf("%s: %q, want %q", test.finding.Verdict, got, test.want)
		}
	}
}

func TestEveryVerdictHasARemedyEvenWithoutAPlace(t *testing.T) {
	for _, v := range verdicts {
		f := judge.Finding{Verdict: v.Verdict}
		if text := remedy(f); !strings.HasSuffix(text, ".") || strings.Contains(text, "%!") || strings.Contains(text, "  ") {
			t.Errorf("%s: %q", v.Verdict, text)
		}
		if fixedWhen(f) == "" {
			t.Errorf("%s: there is no condition under which it is fixed", v.Verdict)
		}
	}
}

func TestARaceNeedsMoreReplaysToBeFixed(t *testing.T) {
	f := judge.Finding{Verdict: judge.Diverged, Fault: &fault.Fault{Kind: fault.Error500}, Replay: "koboshi check replay x", Reproduced: 3, Attempts: 3}
	if got := fixedWhen(f); got != "3 of 3 replays pass" {
		t.Error(got)
	}
	f.Attempts = 5
	if got := fixedWhen(f); got != "5 of 5 replays pass" {
		t.Error(got)
	}
}

func TestARemedyTakesAtMostTwoLinesAt80Columns(t *testing.T) {
	long := "Deployment.apps the-namespace-of-a-customer/a-rather-long-name-of-a-database-replica-7"
	for _, v := range verdicts {
		for _, path := range []string{"", "status.conditions[Ready].message", "spec.template.spec.containers[main].env[DATABASE_URL].value"} {
			f := judge.Finding{Verdict: v.Verdict, Replay: "x", Request: "PATCH deployments.apps the-namespace-of-a-customer/a-rather-long-name-of-a-database-replica-7",
				Differences: []state.Difference{{Object: long, Path: path, Want: "1", Got: "2"}}}
			var b bytes.Buffer
			sheet := &text{sheet: newSheet(&b, 80, false), report: &Report{}}
			sheet.toFix(f)
			if err := sheet.w.Flush(); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			if len(lines) > 2 {
				t.Errorf("%s: %d lines:\n%s", v.Verdict, len(lines), b.String())
			}
			for _, line := range lines {
				if textwidth.Width(line) > 80 {
					t.Errorf("%s: a line is too wide: %s", v.Verdict, line)
				}
			}
		}
	}
}

func TestJSONHasTheRuleTheRemedyAndTheConditionOfEveryFinding(t *testing.T) {
	r := sample()
	var got Report
	if err := json.Unmarshal(written(t, func(b *bytes.Buffer) error { return r.WriteJSON(b) }), &got); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(got.Findings, got.Remarks...) {
		if f.Rule != ruleID(f.Verdict) || f.Remedy == "" || f.FixedWhen == "" {
			t.Errorf("%s: rule %q, remedy %q, fixed when %q", f.Verdict, f.Rule, f.Remedy, f.FixedWhen)
		}
	}
	if r.Findings[0].Remedy != "" {
		t.Error("writing has changed the report")
	}
}

func TestAnAdviceWithoutAPlaceIsOnlyShortened(t *testing.T) {
	f := judge.Finding{Verdict: judge.Crashed, Replay: "x", Frame: "an-orchestra.(*AReconcilerWithALongName).UpdateTheStatusOfAllOfThem (a_controller_with_a_long_name.go:444)"}
	var b bytes.Buffer
	sheet := &text{sheet: newSheet(&b, 80, false), report: &Report{}}
	sheet.toFix(f)
	if err := sheet.w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.HasPrefix(got, "   to fix       Check for missing and unexpected values in ") || strings.Count(got, "\n") > 2 {
		t.Error(got)
	}
}

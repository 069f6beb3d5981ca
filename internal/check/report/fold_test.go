package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

func TestAMissingPermissionIsOneFindingInAllScenarios(t *testing.T) {
	r := &Report{Version: Version}
	for _, scenario := range []string{"a", "b", "b", "c"} {
		r.Add(judge.Finding{ID: "get-pods", Verdict: judge.RBACMissing, Scenario: scenario, Sentence: "get pods"})
	}
	r.Add(judge.Finding{ID: "get-nodes", Verdict: judge.RBACMissing, Scenario: "a", Sentence: "get nodes"})
	if len(r.Findings) != 2 || !slices.Equal(r.Findings[0].AlsoIn, []string{"b", "c"}) {
		t.Fatalf("%+v", r.Findings)
	}
	text := string(written(t, func(b *bytes.Buffer) error { return r.WriteText(b, TextOptions{}) }))
	if !strings.Contains(text, "also in      scenario b, c") {
		t.Error(text)
	}
}

func TestTheSameRemarkOfSeveralInputsIsMadeOnce(t *testing.T) {
	r := &Report{}
	removed := judge.Finding{ID: "1", Verdict: judge.APIRemoved, Scenario: "a", Input: "spec.size was set to 0"}
	other := removed
	other.Scenario, other.Input = "b", "spec.replicas was set to 0"
	r.Add(removed, other)
	if len(r.Remarks) != 1 || r.Remarks[0].Input != removed.Input || !slices.Equal(r.Remarks[0].AlsoIn, []string{"b"}) {
		t.Fatalf("the remarks are %+v", r.Remarks)
	}
	other.Scenario, other.Input = "life", ""
	if r.Add(other); len(r.Findings) != 1 || r.Findings[0].Input != "" || len(r.Remarks) != 0 {
		t.Errorf("what also happens without an input is a finding; the report has %+v and %+v", r.Findings, r.Remarks)
	}
}

func TestACrashInTheSamePlaceIsOneFinding(t *testing.T) {
	crash := func(scenario, input, frame string) judge.Finding {
		return judge.Finding{ID: scenario, Verdict: judge.Crashed, Scenario: scenario, Input: input, Frame: frame}
	}
	r := &Report{}
	r.Add(crash("a", "spec.mast was removed", "main.sail (sail.go:7)"), crash("b", "spec was removed", "main.sail (sail.go:7)"), crash("direct", "", "main.sail (sail.go:7)"))
	r.Add(crash("c", "", "main.sail (sail.go:9)"), crash("d", "", ""), crash("e", "", ""))
	if len(r.Findings) != 4 || r.Findings[0].Input != "spec.mast was removed" || !slices.Equal(r.Findings[0].AlsoIn, []string{"b", "direct"}) {
		t.Fatalf("%+v", r.Findings)
	}
	faulty := crash("life", "", "main.sail (sail.go:7)")
	faulty.Fault = &fault.Fault{Kind: fault.KillLost}
	if r.Add(faulty); len(r.Findings) != 5 {
		t.Error("a crash after a fault was taken for one without a fault")
	}
}

package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

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
	if r.Add(other); len(r.Remarks) != 1 || r.Remarks[0].Input != "" {
		t.Errorf("it is due to %q, although it also happens without an input", r.Remarks[0].Input)
	}
}

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

package report

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

func TestWhatOnlyAnInputShowsIsAFindingOnlyIfItPanicsInTheControllersOwnCode(t *testing.T) {
	for _, test := range []struct {
		f             judge.Finding
		usual, strict int // findings
	}{
		{judge.Finding{Verdict: judge.Crashed, Input: "spec.a was removed", Frame: "x.Reconcile (x.go:1)"}, 1, 1},
		{judge.Finding{Verdict: judge.Crashed, Input: "spec.a was removed"}, 0, 1},
		{judge.Finding{Verdict: judge.PathDependent, Input: "spec.a was removed"}, 0, 1},
		{judge.Finding{Verdict: judge.PathDependent}, 1, 1},
		{judge.Finding{Verdict: judge.InertField}, 0, 1},
		{judge.Finding{Verdict: judge.NeverReady, Input: "spec.a was removed"}, 0, 1},
		{judge.Finding{Verdict: judge.BlastRadius, Input: "spec.a was removed"}, 0, 1},
		{judge.Finding{Verdict: judge.MoreRequests}, 0, 1},
		{judge.Finding{Verdict: judge.UnboundedLists}, 0, 1},
		{judge.Finding{Verdict: judge.EventStorm}, 0, 0},
		{judge.Finding{Verdict: judge.NotRestored}, 0, 0},
	} {
		usual, strict := &Report{}, &Report{Strict: true}
		usual.Add(test.f)
		strict.Add(test.f)
		if len(usual.Findings) != test.usual || len(strict.Findings) != test.strict || len(usual.Findings)+len(usual.Remarks) != 1 {
			t.Errorf("%s, input %q: %d findings, and %d with --strict", test.f.Verdict, test.f.Input, len(usual.Findings), len(strict.Findings))
		}
	}
}

package lab

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestRunInWhichTheControllerKeptExitingIsNotClean(t *testing.T) {
	const gone = "the controller exited on its own 6 times"
	exit := func(code int) []trace.Entry {
		return []trace.Entry{{Instance: "controller-1", Process: &trace.Process{What: "exited", ExitCode: code}}}
	}
	r := &judge.Reference{Scenario: &scenario.Scenario{Name: "life"}, Mask: &state.Mask{}}
	for name, tt := range map[string]struct {
		run          evidence.Run
		inconclusive string
		found        int
	}{
		"with code 0":             {evidence.Run{Applied: true, Gone: gone, Entries: exit(0)}, gone, 0},
		"with code 1":             {evidence.Run{Applied: true, Gone: gone, Entries: exit(1)}, "", 1},
		"before the fault":        {evidence.Run{Gone: gone, Entries: exit(1)}, gone, 0},
		"after it had strayed":    {evidence.Run{Gone: gone, Inconclusive: "strayed"}, "strayed", 0},
		"once, and it came back ": {evidence.Run{Applied: true, Entries: exit(0)}, "", 0},
	} {
		tt.run.Fault = &fault.Fault{Kind: fault.KillAfter}
		v := &Verdict{Run: &tt.run}
		if v.judge(r, nil); v.Run.Inconclusive != tt.inconclusive || len(v.Findings) != tt.found {
			t.Errorf("%s: %q, findings %+v", name, v.Run.Inconclusive, v.Findings)
		}
	}
}

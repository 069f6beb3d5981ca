package report

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

func TestACheckThatDoesNotCompareTheControllersObjectsIsNotClean(t *testing.T) {
	r := &Report{Version: Version, Runs: 10, References: 3, Scenarios: []Scenario{{Name: "a"}, {Name: "b", Blind: []string{"Deployment.apps default/a"}}},
		Tried: []Tried{{Kind: fault.Restart, Planned: 7, Runs: 7, Clean: 7}}}
	if got := r.outcome(); r.ExitCode() != 2 || !strings.HasPrefix(got, "not clean, because the controller's own objects could not be compared: 10 runs") {
		t.Errorf("exit code %d: %s", r.ExitCode(), got)
	}
	r.Add(judge.Finding{Verdict: judge.Leak})
	if got := r.outcome(); r.ExitCode() != 1 || !strings.HasPrefix(got, "1 finding in") {
		t.Errorf("exit code %d: %s", r.ExitCode(), got)
	}
}

func TestARemarkIsNoFinding(t *testing.T) {
	r := &Report{Version: Version, Runs: 4, References: 3, Tried: []Tried{{Kind: fault.DeleteChild, Planned: 1, Runs: 1, Clean: 1}}}
	r.Add(judge.Finding{Verdict: judge.NotRestored})
	if r.ExitCode() != 0 || len(r.Findings) != 0 || len(r.remarks()) != 1 {
		t.Errorf("exit code %d, findings %+v, remarks %+v", r.ExitCode(), r.Findings, r.remarks())
	}
}

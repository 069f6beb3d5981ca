package judge

import (
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Upgraded makes a finding about an upgrade. about identifies what the finding is about, if that is
// not an object of the differences.
func Upgraded(v Verdict, run *evidence.Run, step, about, outcome string, differences []state.Difference) Finding {
	f := Finding{
		Verdict: v, Scenario: run.Scenario, Step: step, Sentence: sentence(nil, 0, outcome), Differences: differences,
		Seed: run.Seed, Reproduced: 1, Attempts: 1,
	}
	f.ID = f.identity(about + "\n" + what(differences))
	return f
}

// Killed returns a finding about an upgrade in which the new version was killed.
func Killed(f Finding, kill fault.Fault) Finding {
	id := f.ID
	f.Fault = &kill
	f.Sentence = sentence(&kill, 0, f.Sentence)
	f.ID = f.identity(id)
	return f
}

// Authors returns the effective writes of the controller, keyed by the revision that each of them
// created.
func Authors(run *evidence.Run) map[int64]*trace.Entry { return authors(run) }

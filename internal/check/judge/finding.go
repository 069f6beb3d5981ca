package judge

import (
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// Verdict is what a finding says of the controller.
type Verdict string

// The verdicts, the most serious first.
const (
	Diverged             Verdict = "DIVERGED"
	SplitBrain           Verdict = "SPLIT BRAIN"
	DestructiveBlip      Verdict = "DESTRUCTIVE BLIP"
	Crashed              Verdict = "CRASHED"
	Leak                 Verdict = "LEAK"
	DivergedUntilRestart Verdict = "DIVERGED UNTIL RESTART"
	PathDependent        Verdict = "PATH DEPENDENT"
	HotLoop              Verdict = "HOT LOOP"
	RBACMissing          Verdict = "RBAC MISSING"
	RBACUnused           Verdict = "RBAC UNUSED"
)

// Finding is one thing that is wrong, with all that a person needs to believe it
// and to see it again.
type Finding struct {
	// ID is the same for the same finding in another run: a hash of the verdict,
	// the scenario, the fault's point and what differs.
	ID       string  `json:"id"`
	Verdict  Verdict `json:"verdict"`
	Scenario string  `json:"scenario"`
	Step     string  `json:"step"`
	// Fault is nil if no fault was needed.
	Fault *fault.Fault `json:"fault,omitempty"`
	// Sentence says in one sentence what was done to the controller and what came
	// of it.
	Sentence string `json:"sentence"`
	// Differences are the fields that are not as without the fault.
	Differences []state.Difference `json:"differences,omitempty"`
	// LastAction is the last thing that the controller did.
	LastAction string `json:"lastAction,omitempty"`
	// Detail is more text, in lines: a panic, the requests of a loop.
	Detail string `json:"detail,omitempty"`
	// Reproduced of Attempts runs of the same fault showed the same; the first one
	// counts.
	Reproduced int `json:"reproduced"`
	Attempts   int `json:"attempts"`
	// AlsoBy is how many other faults showed the same.
	AlsoBy int `json:"alsoBy,omitempty"`
	// Seed is that of the run.
	Seed uint64 `json:"seed"`
	// File holds the finding, relative to where the check was run; Replay is the
	// command that runs it again.
	File   string `json:"file,omitempty"`
	Replay string `json:"replay,omitempty"`
	// FoundAfterRuns and FoundAfterSeconds say how long it took.
	FoundAfterRuns    int     `json:"foundAfterRuns,omitempty"`
	FoundAfterSeconds float64 `json:"foundAfterSeconds,omitempty"`
}

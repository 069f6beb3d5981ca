package judge

import (
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// Verdict classifies a finding.
type Verdict string

// These are the verdicts, in order of severity.
const (
	Diverged             Verdict = "DIVERGED"
	SplitBrain           Verdict = "SPLIT BRAIN"
	DestructiveBlip      Verdict = "DESTRUCTIVE BLIP"
	TakenOver            Verdict = "TAKEN OVER"
	SecretLeaked         Verdict = "SECRET LEAKED"
	Invariant            Verdict = "INVARIANT"
	Crashed              Verdict = "CRASHED"
	Leak                 Verdict = "LEAK"
	DivergedUntilRestart Verdict = "DIVERGED UNTIL RESTART"
	PathDependent        Verdict = "PATH DEPENDENT"
	HotLoop              Verdict = "HOT LOOP"
	RBACMissing          Verdict = "RBAC MISSING"
	RecoveredLate        Verdict = "RECOVERED LATE"
	NotRestored          Verdict = "NOT RESTORED"
	RBACUnused           Verdict = "RBAC UNUSED"
	InertField           Verdict = "INERT FIELD"
)

// IsRemark reports whether a verdict describes behavior that is worth knowing, but may be intended.
// A remark never makes a check fail.
func (v Verdict) IsRemark() bool {
	return v == RecoveredLate || v == NotRestored || v == RBACUnused || v == InertField
}

// Finding is one defect, with everything that a user needs to believe and reproduce it.
type Finding struct {
	// ID is the same for the same finding in another run. The ID is a hash of the verdict, the
	// scenario, the step, the fault and the objects that differ.
	ID       string  `json:"id"`
	Verdict  Verdict `json:"verdict"`
	Scenario string  `json:"scenario"`
	Step     string  `json:"step"`
	// Fault is nil if no fault was needed.
	Fault *fault.Fault `json:"fault,omitempty"`
	// Sentence describes the fault and its effect in one sentence.
	Sentence string `json:"sentence"`
	// Differences holds the fields that differ from the runs without the fault.
	Differences []state.Difference `json:"differences,omitempty"`
	// Frame is the innermost frame of a panic in the controller's own code, if it is known.
	Frame string `json:"frame,omitempty"`
	// LastAction is the controller's last effective write.
	LastAction string `json:"lastAction,omitempty"`
	// Missing lists the permissions that the service account lacks, if they are known.
	Missing []Permission `json:"missing,omitempty"`
	// Detail holds more lines of text, such as a panic or the requests of a loop.
	Detail string `json:"detail,omitempty"`
	// Reproduced is the number of runs that showed the finding, out of Attempts runs of
	// the same fault, including the first.
	Reproduced int `json:"reproduced"`
	Attempts   int `json:"attempts"`
	// AlsoBy is the number of other faults that led to the same finding.
	AlsoBy int `json:"alsoBy,omitempty"`
	// AlsoIn lists other scenarios with the same finding.
	AlsoIn []string `json:"alsoIn,omitempty"`
	// WatchedSeconds is the time for which the controller was watched at rest to make the finding.
	// WatchedSeconds is 0 if the finding needed no such observation.
	WatchedSeconds float64 `json:"watchedSeconds,omitempty"`
	// Seed is the seed of the run.
	Seed uint64 `json:"seed"`
	// File is the file with the finding, relative to the folder of the check. Replay is the
	// command that replays the finding.
	File   string `json:"file,omitempty"`
	Replay string `json:"replay,omitempty"`
	// Silence describes how the project can accept the finding. Silence is nil if no setting
	// accepts the finding.
	Silence *Silence `json:"silence,omitempty"`
	// FoundAfterRuns and FoundAfterSeconds record when in the check the defect was found.
	FoundAfterRuns    int     `json:"foundAfterRuns,omitempty"`
	FoundAfterSeconds float64 `json:"foundAfterSeconds,omitempty"`
}

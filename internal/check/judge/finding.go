package judge

import (
	"slices"
	"strings"

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
	Collision            Verdict = "COLLISION"
	SecretLeaked         Verdict = "SECRET LEAKED"
	Invariant            Verdict = "INVARIANT"
	Crashed              Verdict = "CRASHED"
	StuckTerminating     Verdict = "STUCK TERMINATING"
	Leak                 Verdict = "LEAK"
	DivergedUntilRestart Verdict = "DIVERGED UNTIL RESTART"
	PathDependent        Verdict = "PATH DEPENDENT"
	HotLoop              Verdict = "HOT LOOP"
	RBACMissing          Verdict = "RBAC MISSING"
	APIRemoved           Verdict = "API REMOVED"
	DataLost             Verdict = "DATA LOST"
	ConversionLossy      Verdict = "CONVERSION LOSSY"
	Wedged               Verdict = "WEDGED"
	UpgradeChurn         Verdict = "UPGRADE CHURN"
	NotAsFresh           Verdict = "DIFFERS FROM A FRESH INSTALL"
	StoredVersionsStuck  Verdict = "STORED VERSIONS STUCK"
	DowngradeBroken      Verdict = "DOWNGRADE BROKEN"
	RecoveredLate        Verdict = "RECOVERED LATE"
	SuiteFailed          Verdict = "SUITE FAILED"
	NotRestored          Verdict = "NOT RESTORED"
	GaveUp               Verdict = "GAVE UP"
	RBACUnused           Verdict = "RBAC UNUSED"
	RefusedLate          Verdict = "REFUSED LATE"
	BlastRadius          Verdict = "BLAST RADIUS"
	NeverReady           Verdict = "NEVER READY"
	CreationOnly         Verdict = "CREATION ONLY"
	InertField           Verdict = "INERT FIELD"
	MoreRequests         Verdict = "MORE REQUESTS"
	UnboundedLists       Verdict = "UNBOUNDED LISTS"
	EventStorm           Verdict = "EVENT STORM"
)

// remarks lists the verdicts of behavior that may be intended.
var remarks = []Verdict{
	RecoveredLate, SuiteFailed, NotRestored, GaveUp, RBACUnused, RefusedLate, BlastRadius, NeverReady, CreationOnly, InertField,
	MoreRequests, UnboundedLists, EventStorm,
}

// IsRemark reports whether a verdict describes behavior that is worth knowing, but may be intended.
// A remark never makes a check fail.
func (v Verdict) IsRemark() bool {
	return slices.Contains(remarks, v)
}

// IsStrict reports whether the verdict is a remark only because the project may have decided so: a
// field may be unused for good reasons, an action may be optional, and more requests may be worth their
// cost. With --strict, it is a finding.
func (v Verdict) IsStrict() bool {
	return slices.Contains([]Verdict{GaveUp, RefusedLate, BlastRadius, NeverReady, InertField, MoreRequests, UnboundedLists}, v)
}

// NeedsCheck reports whether only a whole check shows the verdict. A replay runs one scenario, without
// the settings of the project.
func (v Verdict) NeedsCheck() bool { return v == MoreRequests || v == UnboundedLists }

// NeedsStrict reports whether the finding is a remark unless --strict is given. What an unusual input
// leads to may be intended: a new version that cannot be taken back, labels that stay, a kind that this
// cluster lacks. A panic in the controller's own code is never intended.
func (f Finding) NeedsStrict() bool {
	return f.Verdict.IsStrict() || f.Input != "" && (f.Verdict != Crashed || f.Frame == "")
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
	// Input describes the change of a field that led to the finding, if only inputs were tried.
	Input string `json:"input,omitempty"`
	// Differences holds the fields that differ from the runs without the fault.
	Differences []state.Difference `json:"differences,omitempty"`
	// Frame is the innermost frame of a panic in the controller's own code, if it is known.
	Frame string `json:"frame,omitempty"`
	// Request is the request that is repeated or must not be sent, if the finding is about requests.
	Request string `json:"request,omitempty"`
	// LastAction is the controller's last effective write.
	LastAction string `json:"lastAction,omitempty"`
	// Missing lists the permissions that the service account lacks, if they are known.
	Missing []Permission `json:"missing,omitempty"`
	// Unneeded lists the permissions that were never used, if the finding is about them.
	Unneeded []Permission `json:"unneeded,omitempty"`
	// Failed is the number of requests that a burst of errors answered in this run. It is 0 for
	// other faults, and if the burst was complete.
	Failed int `json:"failed,omitempty"`
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
	// RecoveredAfterSeconds is the time from the end of the fault, or from the beginning of the step if
	// it began later, until the state was right, including the time for help. UnrecoveredSeconds is the
	// time after which Koboshi gave up because the state was still wrong. Both are 0 if the time is not
	// known.
	RecoveredAfterSeconds float64 `json:"recoveredAfterSeconds,omitempty"`
	UnrecoveredSeconds    float64 `json:"unrecoveredSeconds,omitempty"`
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
	// Rule, Remedy and FixedWhen are set only in a JSON report. Rule is the ID of the verdict in
	// SARIF, such as "koboshi/hot-loop". Remedy says in one line what to change in the controller,
	// and FixedWhen when the finding counts as fixed.
	Rule      string `json:"rule,omitempty"`
	Remedy    string `json:"remedy,omitempty"`
	FixedWhen string `json:"fixedWhen,omitempty"`
}

// Place returns the object that the finding is mainly about, and the path of its field. The path is
// empty if the finding is about the complete object. Both are empty if the finding names no object.
func (f Finding) Place() (object, path string) {
	if len(f.Differences) == 0 {
		return "", ""
	}
	d := mostTelling(f.Differences)
	if strings.HasPrefix(d.Path, "(") { // a number of deletions
		return d.Object, ""
	}
	return d.Object, d.Path
}

// Includes reports whether another finding is part of this one: both have the same verdict and the
// same fault, if in different steps, and every place that the other finding names is in a place
// that this finding names.
func (f Finding) Includes(other Finding) bool {
	if f.Verdict != other.Verdict || len(other.Differences) == 0 || !sameFault(f.Fault, other.Fault) {
		return false
	}
	return !slices.ContainsFunc(other.Differences, func(part state.Difference) bool {
		return !slices.ContainsFunc(f.Differences, func(whole state.Difference) bool {
			return whole.Object == part.Object && (whole.Path == part.Path || whole.Path != "" && below(part.Path, whole.Path))
		})
	})
}

// sameFault reports whether two faults do the same to the same request or object, perhaps in
// different steps.
func sameFault(a, b *fault.Fault) bool {
	if a == nil || b == nil {
		return a == b
	}
	return anywhere(*a) == anywhere(*b)
}

// anywhere returns a fault without the moment at which it is applied.
func anywhere(f fault.Fault) fault.Fault {
	f.Point.Step, f.Point.Change, f.Point.Occurrence = "", "", 0
	f.Until, f.Revision, f.Behind = "", 0, 0
	return f
}

// Package evidence defines the record of one run of a controller. Package judge reads this
// record.
package evidence

import (
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/exposure"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Run is one execution of a scenario.
type Run struct {
	Scenario string
	// Seed determines the random choices of this run, such as jitter.
	Seed uint64
	// Fault is nil in a reference run.
	Fault *fault.Fault
	// Applied reports whether the point of the fault was reached and the fault could be
	// applied. NotApplied is the reason why the fault was not applied.
	Applied    bool
	NotApplied string
	// Inconclusive is the reason why nothing can be concluded from this run, for example
	// because a step could not be performed.
	Inconclusive string
	// Gone describes a controller that kept exiting until the run was ended. The last step did
	// not come to rest.
	Gone string
	// Strayed describes a run that is inconclusive because its state differed from the
	// reference although no fault had been applied.
	Strayed *Strayed

	Steps   []Step
	History state.History
	Entries []trace.Entry
	// Logs is the end of the output of all instances of the controller.
	Logs string
	// Panic is the first panic in the output of any instance, with the lines around it. The panic
	// may come from a part of the output before Logs.
	Panic string
	// Exposed lists the places at which values of Secrets became readable, without the values.
	Exposed []exposure.Place
	Took    time.Duration
}

// Strayed describes where a run differed from the reference without a fault.
type Strayed struct {
	Step        string             `json:"step"`
	Differences []state.Difference `json:"differences,omitempty"`
}

// Step records one step of the scenario in a run.
type Step struct {
	Name string
	// Began and Rested are the revisions of the store when the step began and when it came
	// to rest, that is, when the writes had stopped. BeganAt and RestedAt are the times
	// since the start of the run.
	Began, Rested     int64
	BeganAt, RestedAt time.Duration
	// Restless reports whether the step did not come to rest before the timeout. Unrest is
	// the reason.
	Restless bool
	Unrest   string
	// Faulty reports whether the fault was applied in this step.
	Faulty bool
	// Healed is the stage of healing after which the state matched the reference, or
	// Never.
	Healed Stage
	// If Healed is TimeOut, Period is the timeout of the watches that had to end before the state
	// became right. If Healed is Later, Period is the time that this took.
	Period time.Duration
	// Watched is the time for which the controller was observed after the step came to
	// rest. Idle holds the controller's writes while it was observed, including those that
	// changed nothing.
	Watched time.Duration
	Idle    []trace.Entry
	// Crashed reports whether the controller panicked or kept exiting in this step, Refused is the
	// reason why the server refused the step, and Said is what the controller printed. They are set
	// only in runs that try inputs.
	Crashed bool
	Refused string
	Said    string
	// Failed lists the expectations that did not hold.
	Failed []string
	// Suite records the test suite that the step ran; nil for any other step.
	Suite *Suite
	// Ledger lists the external resources, sorted; nil if the scenario names no ledger.
	Ledger []string
}

// Suite records a test suite that ran to its end.
type Suite struct {
	// EndedAt is the time since the start of the run, and Ended the revision of the store, when the
	// suite ended.
	EndedAt time.Duration
	Ended   int64
	// Printed is the end of its output.
	Printed string
	// Failed holds the command, its exit status and the last lines that it printed, if it failed.
	Failed string
}

// Stage is a stage of healing.
type Stage string

// These are the stages of healing, in the order in which they are tried. A controller that recovers
// on its own needs no stage after Later.
const (
	AtOnce  Stage = ""        // the state was right when the step came to rest
	Wait    Stage = "wait"    // the state was right after more time
	Later   Stage = "later"   // the state was right after much more time, which only some runs give
	TimeOut Stage = "timeout" // the state was right after the end of watches that would soon have timed out
	Relist  Stage = "relist"  // the state was right after the watches ended and the controller listed again
	Restart Stage = "restart" // the state was right after a restart of the controller
	Poke    Stage = "poke"    // the state was right after the reconciled objects were annotated
	Never   Stage = "never"   // the state was not right after any of these stages
)

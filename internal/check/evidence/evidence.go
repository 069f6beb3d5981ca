// Package evidence records what one run of a controller showed. It is data; judge
// reads it, and a finding keeps it.
package evidence

import (
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Run is one execution of a scenario.
type Run struct {
	Scenario string
	// Seed determines the random choices of this run: jitter, and what depends on it.
	Seed uint64
	// Fault is nil in a reference run.
	Fault *fault.Fault
	// Applied reports whether the fault's point was reached and the fault could be
	// applied; NotApplied is why not.
	Applied    bool
	NotApplied string
	// Inconclusive is why nothing can be concluded from this run: the world did not come
	// to rest and still changed, a step could not be performed, …
	Inconclusive string

	Steps   []Step
	History state.History
	Entries []trace.Entry
	// Logs is the end of the output of all the controller's instances.
	Logs string
	Took time.Duration
}

// Step is the course of one step of the scenario.
type Step struct {
	Name string
	// Began and Rested are the store's revisions when the step began and when it came to
	// rest; BeganAt and RestedAt are the times since the start of the run.
	Began, Rested     int64
	BeganAt, RestedAt time.Duration
	// Restless reports whether writes continued until the timeout.
	Restless bool
	// Faulty reports whether the fault was applied in this step.
	Faulty bool
	// Healed is the stage of healing after which the state was that of the reference, or
	// Never.
	Healed Stage
	// Watched is the time for which the step was watched at rest; Idle holds the
	// controller's writes in that time, effective or not.
	Watched time.Duration
	Idle    []trace.Entry
	// Failed lists the expectations that did not hold.
	Failed []string
	// Ledger lists the external resources, sorted; nil if the scenario names no ledger.
	Ledger []string
}

// Stage is a stage of healing, in the order in which they are tried.
type Stage string

// The stages. A controller that recovers on its own needs none, or Wait.
const (
	AtOnce  Stage = ""        // the state was right at rest
	Wait    Stage = "wait"    // right after more time
	Relist  Stage = "relist"  // right after its watches were ended and it listed again
	Restart Stage = "restart" // right after a restart
	Poke    Stage = "poke"    // right after the resource was touched
	Never   Stage = "never"   // not right after all of that
)

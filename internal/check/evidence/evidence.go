// Package evidence is what one run of a controller showed. It is data; judge
// reads it, and a finding keeps it.
package evidence

import (
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Run is one scenario, done once.
type Run struct {
	Scenario string
	// Seed is that of the random choices of this run: jitter, and what depends on
	// it.
	Seed uint64
	// Fault is nil in a reference run.
	Fault *fault.Fault
	// Applied says that the fault's point was reached and the fault could be
	// applied; NotApplied why not.
	Applied    bool
	NotApplied string
	// Inconclusive says why nothing can be said of this run: the world did not
	// come to rest and still changed, a step could not be done, …
	Inconclusive string

	Steps   []Step
	History state.History
	Entries []trace.Entry
	// Logs is the end of what the controller wrote, of all its instances.
	Logs string
	Took time.Duration
}

// Step is how one step of the scenario went.
type Step struct {
	Name string
	// Began and Rested are the store's revisions when it began and when all had
	// come to rest, BeganAt and RestedAt the times since the start of the run.
	Began, Rested     int64
	BeganAt, RestedAt time.Duration
	// Restless says that writes went on until the timeout.
	Restless bool
	// Faulty says that the fault was applied in this step.
	Faulty bool
	// Healing is the last stage that was tried until the state was that of the
	// reference: Healed names it if it was, otherwise Healed is Never.
	Healed Stage
	// Watched is how long it was watched at rest; Idle are the writes that the
	// controller did in that time, effective or not.
	Watched time.Duration
	Idle    []trace.Entry
	// Expected are the expectations that did not hold.
	Failed []string
	// Ledger is what there was outside the cluster, sorted; nil if the scenario
	// names no ledger.
	Ledger []string
}

// Stage is a stage of healing, from the mildest on.
type Stage string

// The stages. A controller that gets up by itself needs none or Wait.
const (
	AtOnce  Stage = ""        // the state was right when all had come to rest
	Wait    Stage = "wait"    // right after more time
	Relist  Stage = "relist"  // right after its watches were ended and it listed again
	Restart Stage = "restart" // right after a restart
	Poke    Stage = "poke"    // right after the resource was touched
	Never   Stage = "never"   // not right after all of that
)

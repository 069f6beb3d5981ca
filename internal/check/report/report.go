// Package report is what a check says in the end, for people and for programs.
//
//	Report ──┬── WriteText   a terminal            Progress   the same, while it runs
//	         ├── WriteJSON   programs, ReadFile, Merge
//	         ├── WriteJUnit  the test page of a CI
//	         ├── WriteSARIF  code review
//	         └── WriteHTML   one page with the timeline of each finding
//
// Findings are also files of their own, by which they are run again: see
// SaveFinding. Names of objects, logs and values come from the controller and are
// not to be trusted: nothing that is written here can steer a terminal, a CI or a
// browser, see plain.
package report

import (
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// Version is the version of the format. A reader refuses another one.
const Version = 1

// Report is the result of a check, or of a shard of one.
type Report struct {
	Version int    `json:"version"` // of this format: 1
	Subject string `json:"subject"`
	// Command is how it was run, to be run again.
	Command string    `json:"command"`
	Seed    uint64    `json:"seed"`
	Started time.Time `json:"started"`
	// Seconds is how long it took; of merged shards the sum.
	Seconds float64 `json:"seconds"`
	// Shard is "1/4", or empty.
	Shard     string          `json:"shard,omitempty"`
	Findings  []judge.Finding `json:"findings"`
	Scenarios []Scenario      `json:"scenarios"`
	Tried     []Tried         `json:"tried"`
	// Runs is how many runs there were in all, References how many of them were
	// without a fault, Confirmations those that repeated a finding.
	Runs          int `json:"runs"`
	References    int `json:"references"`
	Confirmations int `json:"confirmations"`
	// Inconclusive are the runs of which nothing can be said, with the reason.
	Inconclusive []NotRun `json:"inconclusive,omitempty"`
	NotApplied   []NotRun `json:"notApplied,omitempty"`
	// LeftOut are planned faults for which the budget was not enough; LeftToShards
	// those that other shards run.
	LeftOut      []NotRun `json:"leftOut,omitempty"`
	LeftToShards int      `json:"leftToShards,omitempty"`
	// Notes are remarks that are no findings, such as unused permissions.
	Notes []string `json:"notes,omitempty"`
	// Sources are the files to which a finding can be pinned in a code review.
	Sources Sources `json:"sources,omitzero"`
}

// Sources are files of the project, relative to it, each with ":LINE" after it if
// the line is known. All of them may be empty.
type Sources struct {
	// Main is the file of the controller's main function.
	Main string `json:"main,omitempty"`
	// Kinds are the files in which kinds are declared, by "Kind.group".
	Kinds map[string]string `json:"kinds,omitempty"`
	// RBAC is the file with the controller's role.
	RBAC string `json:"rbac,omitempty"`
}

// Scenario is what was learnt about one.
type Scenario struct {
	Name  string `json:"name"`
	Steps int    `json:"steps"`
	// Writes is how many effective writes the controller did without a fault,
	// Seconds how long that took.
	Writes  int     `json:"writes"`
	Seconds float64 `json:"seconds"`
	// Masked are the fields that differ from run to run and are not compared.
	Masked []string `json:"masked,omitempty"`
	// Kind is the kind that it is about, "Kind.group"; File the file that it was
	// read from, or the sample that it was made of. Both may be empty.
	Kind string `json:"kind,omitempty"`
	File string `json:"file,omitempty"`
}

// Tried counts the faults of one kind. Runs = Clean + Found + NotApplied +
// Inconclusive; confirmations are not among them.
type Tried struct {
	// Scenario is the one in which they were tried. Empty means that the counts
	// are of all scenarios; then JUnit has no suite for each of them.
	Scenario     string     `json:"scenario,omitempty"`
	Kind         fault.Kind `json:"kind"`
	Planned      int        `json:"planned"` // of a shard: those that are its own
	Runs         int        `json:"runs"`
	Clean        int        `json:"clean"`
	Found        int        `json:"found"`
	NotApplied   int        `json:"notApplied"`
	Inconclusive int        `json:"inconclusive"`
	// Pruned are those that need no run: their state had been explored.
	Pruned int `json:"pruned"`
	// Seconds is how long the runs took, one after the other.
	Seconds float64 `json:"seconds,omitempty"`
}

// NotRun is a planned fault that says nothing, and why.
type NotRun struct {
	Scenario string      `json:"scenario"`
	Fault    fault.Fault `json:"fault"`
	Why      string      `json:"why"`
	// Suspicion is what looked wrong and did not show every time, or not only with
	// the fault; nil if nothing did.
	Suspicion *judge.Finding `json:"suspicion,omitempty"`
}

// Sort puts the most serious findings first and leaves those of one verdict in
// their order.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Findings, func(a, b judge.Finding) int {
		return rank(a.Verdict) - rank(b.Verdict)
	})
}

// ExitCode is 0 if nothing was found, 1 if something was, and 2 if of no fault
// anything could be said. A permission that was never used alone is no finding. Of a
// shard, which may be small, it is 0 or 1.
func (r *Report) ExitCode() int {
	_, all := r.triedByKind()
	switch {
	case len(r.serious()) > 0:
		return 1
	case r.Shard == "" && all.Runs > 0 && !r.conclusive():
		return 2 // of no fault could anything be said
	}
	return 0
}

// serious are the findings that count; remarks are the others.
func (r *Report) serious() []judge.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), isRemark)
}

func (r *Report) remarks() []judge.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f judge.Finding) bool { return !isRemark(f) })
}

func isRemark(f judge.Finding) bool { return f.Verdict == judge.RBACUnused }

// add counts the others too.
func (t *Tried) add(other Tried) {
	t.Planned += other.Planned
	t.Runs += other.Runs
	t.Clean += other.Clean
	t.Found += other.Found
	t.NotApplied += other.NotApplied
	t.Inconclusive += other.Inconclusive
	t.Pruned += other.Pruned
	t.Seconds += other.Seconds
}

// triedByKind are the counts of all scenarios together, in order of first
// appearance, and their sum.
func (r *Report) triedByKind() (kinds []Tried, all Tried) {
	at := map[fault.Kind]int{}
	for _, t := range r.Tried {
		i, known := at[t.Kind]
		if !known {
			i = len(kinds)
			at[t.Kind] = i
			kinds = append(kinds, Tried{Kind: t.Kind})
		}
		kinds[i].add(t)
		all.add(t)
	}
	return kinds, all
}

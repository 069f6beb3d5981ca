// Package judge determines from a run what is wrong with the controller. The package is an ordered
// chain of pure functions over one input. Its functions use nothing but this input, so a run can be
// judged again later.
//
//	runs without a fault ──NewReference──▶ Reference
//	                                          │
//	run with a fault ──────────────Judge──────┴──▶ findings, or none
//
// A finding against a correct controller is worse than a missed bug, so there is no finding
// where the cause of an effect is unclear.
package judge

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// input holds the data that the oracles use.
type input struct {
	ref     *Reference
	run     *evidence.Run
	subject *subject.Subject
	labels  *state.Labels
	steps   []step
	// authors holds the controller's effective writes, keyed by the revision that each of
	// them created.
	authors map[int64]*trace.Entry
	// writes is like authors, with bookkeeping; see writeOf.
	writes map[int64]*trace.Entry
}

// step is a step of the run, together with the corresponding step of the reference.
type step struct {
	evidence.Step
	want *StepReference
	// before is the previous step in the reference, or nil for the first.
	before *StepReference
	index  int
	// end is the last revision that belongs to the step. helped is the revision at which
	// the checker began to help the controller, or, without help, the revision at which the
	// step came to rest.
	end, helped int64
	// held reports whether watches were still held back when the step came to rest, so that
	// the state at that time proves nothing.
	held bool
	// deletes reports whether the step deletes a resource.
	deletes bool
}

// An oracle finds problems of one category.
type oracle func(*input) []Finding

// always lists the oracles that run in every case, in this order.
var always = []oracle{
	crashed,    // the controller panicked, or exits on its own again and again
	endState,   // a step led to a different state than without the fault
	suites,     // the test suite waited in vain, or failed
	splitBrain, // an instance still wrote after another instance had taken its Lease
	foreign,    // the controller removed a mark that another client had put on an object
	reowned,    // the controller took an object from one living owner for another
	exposed,    // a value of a Secret is readable where Secrets are not
	invariants, // a rule of the scenario does not hold in a revision
	restless,   // the controller never stops writing
}

// ifRight lists the oracles that run only if the end state is correct, because they would
// find only the consequences of a wrong end state.
var ifRight = []oracle{
	expectations, // an expectation of the scenario does not hold
	blips,        // objects were deleted for no reason
	destructive,  // objects were scaled down, or rolled out again, for no reason
	regenerated,  // a random value was generated again
	ledgers,      // an external resource is left over or missing
	idle,         // the controller writes although there is nothing to do
	owners,       // an owner does not exist, or may not be an owner
}

// Judge returns the findings of a run with a fault; nil means that the controller
// recovered.
func Judge(r *Reference, run *evidence.Run, s *subject.Subject) []Finding {
	in := newInput(r, run, s)
	if run.Inconclusive != "" || run.Fault != nil && !run.Applied {
		return panics(in) // a panic counts even if the rest cannot be judged
	}
	var findings []Finding
	for _, ask := range always {
		findings = append(findings, ask(in)...)
	}
	if slices.ContainsFunc(findings, func(f Finding) bool { return isEndState(f.Verdict) }) {
		return findings
	}
	for _, ask := range ifRight {
		findings = append(findings, ask(in)...)
	}
	return findings
}

// isEndState reports whether a verdict means that a state stayed wrong, or that a suite stopped early.
// If a state became right late, the remaining oracles still run.
func isEndState(v Verdict) bool {
	return v == Diverged || v == DivergedUntilRestart || v == NotRestored || v == GaveUp || v == Leak || v == HotLoop || v == SuiteFailed
}

func newInput(r *Reference, run *evidence.Run, s *subject.Subject) *input {
	if s == nil {
		s = &subject.Subject{}
	}
	in := &input{ref: r, run: run, subject: s, labels: r.Mask.Label(run.History), authors: authors(run)}
	var before *StepReference
	for i, at := range run.Steps {
		want := r.find(at.Name)
		if want == nil {
			break // the reference lacks this step
		}
		in.steps = append(in.steps, step{
			Step: at, want: want, before: before, index: i, end: end(run, i), helped: helped(run, i),
			held: held(run.Fault, run.Steps, i), deletes: in.deletes(at.Name),
		})
		before = want
	}
	return in
}

// held reports whether a fault still holds watches back when a step comes to rest.
func held(f *fault.Fault, steps []evidence.Step, i int) bool {
	if f == nil || f.Until == "" {
		return false
	}
	from := slices.IndexFunc(steps, func(s evidence.Step) bool { return s.Name == f.Point.Step })
	until := slices.IndexFunc(steps, func(s evidence.Step) bool { return s.Name == f.Until })
	return from >= 0 && i >= from && (until < 0 || i < until)
}

// helped returns the revision at which the first stage of healing after Wait began,
// or, if there was no such stage, the revision at which the step came to rest.
func helped(run *evidence.Run, i int) int64 {
	at := run.Steps[i]
	until := time.Duration(1<<63 - 1)
	if i+1 < len(run.Steps) {
		until = run.Steps[i+1].BeganAt
	}
	for _, e := range run.Entries {
		if e.Fault == nil || e.At < at.BeganAt || e.At >= until {
			continue
		}
		switch evidence.Stage(e.Fault.What) {
		case evidence.Later, evidence.TimeOut, evidence.Relist, evidence.Restart, evidence.Poke:
			return revisionAt(run, e.At, at.Began)
		}
	}
	return at.Rested
}

// revisionAt returns the revision of the last change seen up to a time.
func revisionAt(run *evidence.Run, at time.Duration, least int64) int64 {
	revision := least
	for _, c := range run.History.Changes {
		if c.At <= at {
			revision = max(revision, c.Revision)
		}
	}
	return revision
}

// deletes reports whether the step of the scenario deletes a resource.
func (in *input) deletes(name string) bool {
	for _, s := range in.ref.Scenario.Steps {
		if s.Name == name {
			return s.Delete != nil || s.Suite && len(in.deletedIn(name)) > 0
		}
	}
	return false
}

// authors matches the controller's writes with the history. The version in the answer to a
// write is the revision that the write created. A write that arrived after the revision in
// its answer, or that contains this revision itself, changed nothing, so it is not the author of
// that revision. The time of the arrival is inexact on a busy machine, so it only counts if nothing
// else shows that the write made the revision: a creation always does, and so does an update that
// contains an older revision.
func authors(run *evidence.Run) map[int64]*trace.Entry { return authorsOf(run, isWork) }

// writeOf returns the controller's write that made a revision, even if it is bookkeeping, or nil.
// Decoding all writes takes time, and most runs do not need it.
func (in *input) writeOf(revision int64) *trace.Entry {
	if in.writes == nil {
		in.writes = authorsOf(in.run, isWrite)
	}
	return in.writes[revision]
}

// authorsOf matches the writes that selects accepts with the history.
func authorsOf(run *evidence.Run, selects func(*trace.Entry) bool) map[int64]*trace.Entry {
	seen := map[int64]time.Duration{}
	for _, c := range run.History.Changes {
		seen[c.Revision] = c.At
	}
	found := map[int64]*trace.Entry{}
	for i := range run.Entries {
		e := &run.Entries[i]
		if !selects(e) || !succeeded(e) {
			continue
		}
		revision, err := strconv.ParseInt(e.Call.ResourceVersion, 10, 64)
		if err != nil || found[revision] != nil {
			continue
		}
		at, known := seen[revision]
		sent := sentWith(e.Call)
		switch {
		case !known || sent == e.Call.ResourceVersion:
		case e.Call.Verb == "create", sent != "" && sent != "0", e.At-e.Call.Took <= at:
			found[revision] = e
		}
	}
	return found
}

// sentWith returns the resourceVersion in the body of a write, or "".
func sentWith(c *trace.Call) string {
	body, err := c.RequestObject()
	if err != nil || body == nil {
		return ""
	}
	metadata, _ := body["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	return version
}

// isWork reports whether an entry is a write that is part of the controller's work, not
// bookkeeping or a dry run.
func isWork(e *trace.Entry) bool {
	return e.Call != nil && e.Instance != "" && request.IsWork(e.Call)
}

// succeeded reports whether the server carried out a request, even if the client never received the
// answer.
func succeeded(e *trace.Entry) bool {
	return e.Call.Code >= 200 && e.Call.Code < 300 && !e.Call.Injected
}

// conflicted reports whether the server had a newer version than the client knew.
func conflicted(e *trace.Entry) bool {
	return e.Call.Code == http.StatusConflict && !e.Call.Injected
}

// world returns the canonical state at a revision, to be compared with the reference after
// a step.
func (in *input) world(step string, revision int64) state.World {
	return in.ref.Mask.CanonicalAfter(step, in.run.History.At(revision))
}

// last returns the last judged step of the run.
func (in *input) last() *step {
	if len(in.steps) == 0 {
		return nil
	}
	return &in.steps[len(in.steps)-1]
}

// faultyStep returns the name of the step in which the fault was applied.
func (in *input) faultyStep() string {
	for _, s := range in.steps {
		if s.Faulty {
			return s.Name
		}
	}
	if in.run.Fault != nil {
		return in.run.Fault.Point.Step
	}
	return ""
}

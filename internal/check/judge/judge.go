// Package judge says of a run what is wrong with the controller: an ordered chain
// of pure functions over one input. It never looks at anything but its input, so
// a run can be judged again later.
//
//	runs without a fault ──NewReference──▶ Reference
//	                                          │
//	run with a fault ──────────────Judge──────┴──▶ findings, or none
//
// A finding on a correct controller is worse than a bug that is missed: where it
// is not clear whose doing something was, nothing is said.
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
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// input is all that an oracle looks at.
type input struct {
	ref     *Reference
	run     *evidence.Run
	subject *subject.Subject
	labels  *state.Labels
	steps   []step
	// authors are the controller's effective writes by the revision they made.
	authors map[int64]*trace.Entry
}

// step is a step of the run beside the same one of the reference.
type step struct {
	evidence.Step
	want *StepReference
	// before is the step before it in the reference, nil for the first.
	before *StepReference
	index  int
	// end is the last revision that belongs to the step; helped the one at which
	// somebody began to help the controller, or where it came to rest.
	end, helped int64
	// held says that watches were held back over its rest: it says nothing.
	held bool
	// deletes says that the step deletes what the controller reconciles.
	deletes bool
}

// An oracle says what is wrong in one respect.
type oracle func(*input) []Finding

// always are asked in this order, whatever the others say.
var always = []oracle{
	crashed,    // it panicked, or ends by itself again and again
	endState,   // what a step led to is not what it leads to without the fault
	splitBrain, // it wrote on after another instance had taken the Lease
	foreign,    // what somebody else put on an object is gone
	restless,   // it never stops writing
}

// ifRight are asked only if the end state is right: else all they found would be
// consequences.
var ifRight = []oracle{
	expectations, // what the scenario expects does not hold
	blips,        // objects were deleted that nobody wanted to be deleted
	regenerated,  // a random value was made anew
	ledgers,      // something outside the cluster is left, or missing
	idle,         // it writes although there is nothing to do
	owners,       // an owner is not there, or cannot be one
}

// Judge says what is wrong in a run with a fault; nil means that the controller
// got up.
func Judge(r *Reference, run *evidence.Run, s *subject.Subject) []Finding {
	in := newInput(r, run, s)
	if run.Inconclusive != "" || run.Fault != nil && !run.Applied {
		return panics(in) // a panic is one, whatever else is unknown
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

func isEndState(v Verdict) bool {
	return v == Diverged || v == DivergedUntilRestart || v == Leak || v == HotLoop
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
			break // a step that the reference does not know
		}
		in.steps = append(in.steps, step{
			Step: at, want: want, before: before, index: i, end: end(run, i), helped: helped(run, i),
			held: held(run.Fault, run.Steps, i), deletes: in.deletes(at.Name),
		})
		before = want
	}
	return in
}

// held says that a fault holds watches back over the rest of a step.
func held(f *fault.Fault, steps []evidence.Step, i int) bool {
	if f == nil || f.Until == "" {
		return false
	}
	from := slices.IndexFunc(steps, func(s evidence.Step) bool { return s.Name == f.Point.Step })
	until := slices.IndexFunc(steps, func(s evidence.Step) bool { return s.Name == f.Until })
	return from >= 0 && i >= from && (until < 0 || i < until)
}

// helped is the revision at which the first stage of healing began that is more
// than waiting.
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
		case evidence.Relist, evidence.Restart, evidence.Poke:
			return revisionAt(run, e.At, at.Began)
		}
	}
	return at.Rested
}

// revisionAt is the revision of the last change that had been seen at a time.
func revisionAt(run *evidence.Run, at time.Duration, least int64) int64 {
	revision := least
	for _, c := range run.History.Changes {
		if c.At <= at {
			revision = max(revision, c.Revision)
		}
	}
	return revision
}

// deletes says that the scenario's step deletes a resource.
func (in *input) deletes(name string) bool {
	for _, s := range in.ref.Scenario.Steps {
		if s.Name == name {
			return s.Delete != nil
		}
	}
	return false
}

// authors finds the controller's writes in the history: the version in the answer
// is the revision of the write, unless the write changed nothing and came later.
func authors(run *evidence.Run) map[int64]*trace.Entry {
	seen := map[int64]time.Duration{}
	for _, c := range run.History.Changes {
		seen[c.Revision] = c.At
	}
	found := map[int64]*trace.Entry{}
	for i := range run.Entries {
		e := &run.Entries[i]
		if !isWrite(e) || !succeeded(e) {
			continue
		}
		revision, err := strconv.ParseInt(e.Call.ResourceVersion, 10, 64)
		if err != nil || found[revision] != nil {
			continue
		}
		if at, ok := seen[revision]; ok && e.At-e.Call.Took <= at {
			found[revision] = e
		}
	}
	return found
}

// isWrite says that an entry is a request of the controller that is meant to
// change the cluster: no heartbeat, note or question.
func isWrite(e *trace.Entry) bool {
	if e.Call == nil || e.Instance == "" || e.Call.Endpoint != "" || !fault.IsWrite(e.Call) {
		return false
	}
	switch e.Call.Target.Resource {
	case "events", "leases", "tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews",
		"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews":
		return false
	}
	return e.Call.Target.Subresource != "token" && !dryRun(e.Call)
}

// succeeded says that the server did what it was asked, whether or not the client
// got to know.
func succeeded(e *trace.Entry) bool {
	return e.Call.Code >= 200 && e.Call.Code < 300 && !e.Call.Injected
}

// conflicted says that the server had something newer than the client knew.
func conflicted(e *trace.Entry) bool {
	return e.Call.Code == http.StatusConflict && !e.Call.Injected
}

// world is the canonical state at a revision.
func (in *input) world(revision int64) state.World {
	return in.ref.Mask.Canonical(in.run.History.At(revision))
}

// last is the last step of the run that is judged.
func (in *input) last() *step {
	if len(in.steps) == 0 {
		return nil
	}
	return &in.steps[len(in.steps)-1]
}

// faultyStep is the name of the step in which the fault was applied.
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
